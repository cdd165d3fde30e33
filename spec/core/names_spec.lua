-- spec/core/names_spec.lua: what `require "ltrain"` gives, and how it answers to a wrong name.

local lt = require "ltrain"
local error_of = require "spec.error_of"

describe("lt", function()
  it("has tensors and their functions at once", function()
    assert.is_function(rawget(lt, "tensor"))
    assert.is_function(rawget(lt, "no_grad"))
  end)

  it("loads what is written in Lua when it is asked for, once", function()
    assert.equal("class Module", tostring(lt.Module))
    assert.is_true(rawequal(lt.Module, lt.Module))
    assert.is_true(rawequal(lt.nn.Linear, lt.nn.Linear))
  end)

  it("has the protocols", function()
    for _, name in ipairs { "Callback", "Logger", "Metric", "Optimizer", "Strategy" } do
      assert.equal("class " .. name, tostring(lt[name]))
    end
  end)

  it("has nothing that the library alone calls", function()
    for _, name in ipairs { "io", "runtime", "adam_step", "grads_norm", "gru_layer" } do
      assert.matches("there is no lt%." .. name, error_of(function() return lt[name] end))
    end
  end)

  it("names the nearest name at the user's line", function()
    assert.matches("names_spec%.lua:%d+: ltrain: there is no lt%.Modul; did you mean 'Module'%?$",
      error_of(function() return lt.Modul end))
    assert.matches("there is no lt%.whatever_this_is$",
      error_of(function() return lt.whatever_this_is end))
  end)

  it("knows seed by Lightning's name too", function()
    lt.seed_everything(5)
    local first = lt.rand(3):tolist()
    lt.seed(5)
    assert.same(first, lt.rand(3):tolist())
  end)
end)

describe("a catalogue", function()
  it("names the nearest of its files", function()
    assert.matches("optim: there is no 'AdamX'; did you mean 'Adam'%?",
      error_of(function() return lt.optim.AdamX end))
  end)

  it("knows what torchmetrics calls a metric", function()
    for theirs, ours in pairs { F1Score = "F1", MulticlassF1Score = "F1", MeanMetric = "Mean",
      BinaryAccuracy = "Accuracy", MultilabelAUROC = "AUROC" } do
      local message = error_of(function() return lt.metrics[theirs] end)
      assert.matches(("there is no '%s'; write lt%%.metrics%%.%s%%f[^%%w]"):format(theirs, ours),
        message)
    end
  end)

  it("has names that stand elsewhere", function()
    assert.is_true(rawequal(lt.optim.Optimizer, lt.Optimizer))
    assert.is_function(lt.nn.init.uniform_)
  end)

  it("has the functions that its room lists, and no file that is the room's own", function()
    assert.is_function(lt.data.random_split)
    assert.is_function(lt.nn.clip_grad_norm_)
    local private = { callbacks = "file_name", loggers = "number_text", nn = "initialise" }
    for room, own in pairs(private) do
      assert.matches(room .. ": there is no '" .. own .. "'",
        error_of(function() return lt[room][own] end))
      for _, name in pairs(lt[room]) do assert.not_equal(own, name) end
    end
    assert.matches("there is no 'version'", error_of(function() return lt.loggers.version end))
  end)

  it("answers nil to what is not a name", function()
    assert.is_nil(lt.nn[1])
  end)
end)
