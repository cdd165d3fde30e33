-- spec/trainer/names_spec.lua: methods that are nearly hooks are refused with the right word, all
-- others are the script's own.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local function written() end -- by the script

-- What a fit says of a module with these methods and a callback with those.
local function refusal(of_module, of_callback, data)
  local net, callback = tiny.Line(), lt.Callback()
  for name, fn in pairs(of_module) do net[name] = fn end
  for name, fn in pairs(of_callback or {}) do callback[name] = fn end
  local trainer = tiny.trainer { callbacks = { callback } }
  local ok, message = pcall(trainer.fit, trainer, net, data or tiny.same(1))
  return not ok and message or nil
end

local function assert_refused(words, message)
  assert(message, "was not refused: " .. words)
  assert(message:find("^spec/trainer/names_spec.lua:%d+: "), message)
  assert(message:find(words, 1, true), message)
end

local OF_MODULES <const> = {
  { "on_train_epoch_stop", "on_train_epoch_end" }, { "on_train_begin", "on_train_start" },
  { "on_val_epoch_end", "on_validation_epoch_end" }, { "on_training_end", "on_train_end" },
  { "on_train_epoch_over", "on_train_epoch_start' or 'on_train_epoch_end" },
  { "on_befor_backward", "on_before_backward" },
  { "validation_setp", "validation_step" }, { "trainng_step", "training_step" },
  { "tset_step", "test_step" }, { "predict_stpe", "predict_step" },
  { "configure_optimizer", "configure_optimizers" },
  { "configure_optimisers", "configure_optimizers" },
  { "configure_callback", "configure_callbacks" }, { "train_dataloaders", "train_dataloader" },
  { "validation_dataloader", "val_dataloader" },
  { "prepare_date", "prepare_data" }, { "setpu", "setup" }, { "tear_down", "teardown" },
  { "foward", "forward" }, { "backwards", "backward" }, { "load_state_dic", "load_state_dict" },
}

local OF_CALLBACKS <const> = {
  { "on_validation_batch_finish", "on_validation_batch_end" }, { "on_fit_begin", "on_fit_start" },
  { "on_exeption", "on_exception" }, { "statekey", "state_key" }, { "state_dcit", "state_dict" },
  { "on_save_checkpiont", "on_save_checkpoint" }, { "set_up", "setup" },
}

local OLD <const> = {
  { "on_epoch_end", "on_train_epoch_end or on_validation_epoch_end" },
  { "on_batch_start", "on_train_batch_start" }, { "on_keyboard_interrupt", "on_exception" },
  { "on_pretrain_routine_start", "on_fit_start" },
}

local INNOCENT <const> = {
  "on_fire", "on_my_own_event", "on_train_loss", "on_before_tea", "step", "steps", "reset", "best",
  "train_step", "train_step_count", "generator_step", "validate_config", "setup_data", "encode",
  "forward_features", "backward_pass", "training_step_of_generator", "make_dataloader",
  "configure_layers", "prepare_batch", "predict_one", "_validation_setp", "_on_epoch_end",
}

describe("a method that is nearly a hook", function()
  for _, row in ipairs(OF_MODULES) do
    local name, right = row[1], row[2]
    it(("of a module is refused: %s"):format(name), function()
      local message = refusal { [name] = written }
      assert_refused(("Line: no hook is called '%s'; did you mean '%s'? (at spec/trainer/"
        .. "names_spec.lua:6; a method of your own: _%s)"):format(name, right, name), message)
    end)
  end

  for _, row in ipairs(OF_CALLBACKS) do
    it("of a callback is refused: " .. row[1], function()
      assert_refused(("Callback: no hook is called '%s'; "):format(row[1]),
        refusal({}, { [row[1]] = written }))
      assert_refused(("did you mean '%s'?"):format(row[2]), refusal({}, { [row[1]] = written }))
    end)
  end

  it("is refused with the others that are wrong", function()
    local message = refusal({ trainng_step = written, validation_setp = written },
      { on_fit_begin = written })
    for _, name in ipairs { "trainng_step", "validation_setp", "on_fit_begin" } do
      assert_refused(("no hook is called '%s'"):format(name), message)
    end
  end)

  it("of a data module is refused, and of a class that it is below", function()
    local Data = lt.DataModule:extend("Data")
    function Data.train_dataloader() return tiny.same(1) end
    Data.prepere_data = written
    assert_refused("no hook is called 'prepere_data'", refusal({}, {}, Data:extend("Below")()))
  end)

  for _, row in ipairs(OLD) do
    it("is refused where older Lightning called it: " .. row[1], function()
      local words = ("nothing calls '%s'; write %s"):format(row[1], row[2])
      assert_refused("Line: " .. words, refusal { [row[1]] = written })
      assert_refused("Callback: " .. words, refusal({}, { [row[1]] = written }))
    end)
  end

  it("is taken where another method calls it, of the module or of a callback", function()
    local function calls(self) self.forwards() end
    assert.is_nil(refusal { forwards = written, on_train_start = calls })
    assert.is_nil(refusal({ forwards = written }, {
      on_train_start = function(_, _, module)
        local function within() module.forwards() end
        within()
      end,
    }))
    assert_refused("'forwards'", refusal { forwards = written, on_train_start = written })
  end)

  it("is not taken because it calls itself, or a longer name is called", function()
    assert_refused("'forwards'", refusal { forwards = function(self) return self.forwards() end })
    assert_refused("'forwards'", refusal {
      forwards = written, on_train_end = function(self) assert(not self.forwards_there) end,
    })
  end)
end)

describe("a method of the script's own", function()
  it("may have any name that is far from a hook", function()
    local all = {}
    for _, name in ipairs(INNOCENT) do all[name] = written end
    assert.is_nil(refusal(all, all))
  end)

  it("may be one that a class of the library defines", function()
    local Own = lt.callbacks.ModelCheckpoint:extend("Own")
    for name, value in pairs(lt.callbacks.ModelCheckpoint) do
      if type(value) == "function" and not name:find "^_" and name ~= "init" then
        Own[name] = function(...) return value(...) end
      end
    end
    local net = lt.nn.Linear(1, 1)
    function net:training_step(x) return self(x:unsqueeze(-1)):mean() end
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
    tiny.trainer({ enable_checkpointing = true,
      callbacks = { Own { dirpath = tiny.folder(), save_top_k = 0 } } }):fit(net, tiny.same(1))
  end)
end)
