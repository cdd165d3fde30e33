-- spec/compat/old_names_spec.lua: what scripts for older Lightning say: taken with a note, or
-- refused with the right word.
local console = require "ltrain.core.console"
local lt = require "ltrain"
local old_options = require "ltrain.compat.options"
local options = require "ltrain.trainer.setup.options"
local overrides = require "ltrain.trainer.setup.overrides"
local tiny = require "spec.trainer.tiny"

local say <const> = console.say

-- What fn reports on stderr, as one text, and what it returns.
local function reported(fn, ...)
  local lines = {}
  console.say = function(text) lines[#lines + 1] = text end
  local results = table.pack(pcall(fn, ...))
  console.say = say
  assert(results[1], results[2])
  return table.concat(lines, "\n"), table.unpack(results, 2, results.n)
end

-- Each old name with a value: what today's options become, or the words of the refusal.
local TAKEN <const> = {
  { { gpus = 0 }, "gpus = 0 .*: write accelerator = 'gpu' and devices", {} },
  { { num_processes = 2 }, "num_processes = 2 .*: write devices", { devices = 2 } },
  { { tpu_cores = 0 }, "tpu_cores = 0", {} },
  { { ipus = 0 }, "ipus = 0", {} },
  { { auto_select_gpus = true }, "auto_select_gpus = true .*: write devices", {} },
  { { replace_sampler_ddp = false }, "= false .*: write use_distributed_sampler",
    { use_distributed_sampler = false } },
  { { use_amp = true }, "use_amp = true .*: write precision = 'bf16%-mixed'",
    { precision = "bf16-mixed" } },
  { { use_amp = false }, "use_amp = false", {} },
  { { distributed_backend = "ddp" }, "distributed_backend = 'ddp' .*: write strategy",
    { strategy = "ddp" } },
  { { distributed_backend = "ddp_cpu", num_processes = 2 }, "'ddp_cpu' .*: write 'ddp'",
    { strategy = "ddp", devices = 2 } },
  { { strategy = "ddp_cpu" }, "'ddp_cpu' .*: write 'ddp'", { strategy = "ddp" } },
  { { accelerator = "ddp" }, "accelerator = 'ddp' .*: write strategy", { strategy = "ddp" } },
  { { accelerator = "ddp_cpu" }, "accelerator = 'ddp_cpu'", { strategy = "ddp" } },
  { { accelerator = "dp", num_processes = 2 }, "accelerator = 'dp' .*: write strategy",
    { strategy = "dp", devices = 2 } },
  { { accelerator = "horovod" }, "accelerator = 'horovod' .*: write strategy",
    { strategy = "horovod" } },
  { { distributed_backend = "ddp2" }, "distributed_backend = 'ddp2' .*: write strategy",
    { strategy = "ddp2" } },
}

local REFUSED <const> = {
  { { gpus = 1 }, "accelerator = 'gpu': " },
  { { gpus = "0, 1" }, "accelerator = 'gpu': " },
  { { gpus = 2, devices = 3 },
    "gpus is an older name of devices, and both are given: 2 and 3" },
  { { ipus = 1 }, "ipus is not an option: there are no IPUs here" },
  { { amp_level = "O2" }, "amp_level is not an option: write precision = 'bf16%-mixed'" },
  { { distributed_backend = "ddp_spawn" }, "strategy = 'ddp_spawn': .*'ddp', which forks" },
  { { num_processes = 2, devices = 3 },
    "num_processes is an older name of devices, and both are given: 2 and 3" },
  { { accelerator = "ddp", strategy = "single_device" },
    "accelerator is an older name of strategy, and both are given: 'ddp' and 'single_device'" },
  { { devices = -1 }, "write devices = N" },
  { { devices = { 0, 1 } }, "write devices = N" },
  { { devices = "0, 1" }, "write devices = N" },
}

describe("an option of older Lightning", function()
  for _, row in ipairs(TAKEN) do
    local given, words, today = table.unpack(row)
    local name = next(given)
    it(("is taken with a note: %s = %s"):format(name, tostring(given[name])), function()
      local text, trainer = reported(lt.Trainer, given)
      assert.matches("^note: .*" .. words, text)
      for option, value in pairs(today) do assert.equal(value, trainer.options[option]) end
    end)
  end

  for _, row in ipairs(REFUSED) do
    local given, words = table.unpack(row)
    local name = next(given)
    it(("is refused with the right word: %s = %s"):format(name, tostring(given[name])), function()
      local text, message = reported(tiny.error_of, lt.Trainer, given)
      assert.matches("Trainer: .*" .. words, message)
      assert.equal("", text)
    end)
  end

  it("is none of today's, and says what to write", function()
    for name, instead in pairs(old_options.instead) do
      assert.is_nil(options[name])
      assert(#instead > 5, name)
      if old_options.taken[name] == "no" then
        assert.equal("Trainer: " .. name .. " is not an option: " .. instead,
          (tiny.error_of(lt.Trainer, { [name] = 1 }):gsub("^[^ ]+: ", "")))
      end
    end
  end)

  it("of the command line wins over the script's", function()
    finally(function() overrides.values = {} end)
    overrides.set("accelerator", "ddp")
    local _, trainer = reported(lt.Trainer, { num_processes = 2 })
    assert.same({ "ddp", 2 }, { trainer.options.strategy, trainer.options.devices })
    overrides.set("devices", 3)
    _, trainer = reported(lt.Trainer, { num_processes = 2 })
    assert.equal(3, trainer.options.devices)
  end)

  it("leaves the script's own table alone", function()
    local mine = { num_processes = 1 }
    reported(lt.Trainer, mine)
    assert.same({ num_processes = 1 }, mine)
  end)
end)

describe("Trainer{plugins =}", function()
  local IO <const> = { save = print, load = print, remove = print }

  it("recognises its plugins", function()
    local environment = lt.ClusterEnvironment { variables = {} }
    local text, trainer = reported(lt.Trainer, { plugins = { IO, "bf16-mixed", environment } })
    assert.equal(IO, trainer.strategy.checkpoint_io)
    assert.equal("bf16-mixed", trainer.precision_plugin.name)
    assert.equal(environment, trainer.strategy.cluster_environment)
    for _, name in ipairs { "checkpoint_io", "precision", "cluster_environment" } do
      assert.matches("note: plugins .*: write lt.strategies.DDP{" .. name .. " = ...}", text)
    end
  end)

  it("takes a single one", function()
    local _, trainer = reported(lt.Trainer, { plugins = lt.CheckpointIO() })
    assert.equal(lt.CheckpointIO, getmetatable(trainer.strategy.checkpoint_io))
    _, trainer = reported(lt.Trainer, { plugins = "bf16-mixed" })
    assert.equal("bf16", trainer.precision_plugin.autocast)
  end)

  it("refuses two of a kind, and what is none", function()
    local function wrong(o)
      return tiny.error_of(function() reported(lt.Trainer, o) end)
    end
    assert.matches("plugins: two are a precision", wrong { plugins = { "bf16", "32" } })
    assert.matches("plugins: must be a precision, a checkpoint_io or a cluster environment "
      .. "%(batch norm over ranks is sync_batchnorm = true%): got a table",
      wrong { plugins = { { layers = 1 } } })
    assert.matches("precision and plugins give a precision each",
      wrong { plugins = "bf16", precision = "bf16" })
  end)
end)

describe("the older hooks *_step_end", function()
  local Line = tiny.Line:extend("Line")
  function Line:training_step(x) return { loss = self:loss(x), part = x:sum():item() } end
  function Line:validation_step(x) return x:sum():item() end
  Line.test_step = Line.validation_step

  it("get the step's output, and what they return takes its place; noted once", function()
    local net, seen = Line(), {}
    function net.training_step_end(_, outputs)
      seen[#seen + 1] = outputs.part
      return outputs.loss * 0
    end
    local ended
    function net.on_train_batch_end(_, outputs) ended = outputs:item() end
    local text = reported(function() tiny.trainer():fit(net, tiny.batches({ 1, 2 }, { 3 })) end)
    assert.same({ 3, 3 }, { seen[1], seen[2] })
    assert.equal(0, ended)
    assert.equal(0.5, net.w:item())
    local _, count = text:gsub("note: training_step_end is called with this rank's own output", "")
    assert.equal(1, count)
  end)

  it("are called by validation and test alike", function()
    for word, stage in pairs { validate = "validation", test = "test" } do
      local net, ended = Line(), {}
      net[stage .. "_step_end"] = function(_, outputs) return outputs + 100 end
      net["on_" .. stage .. "_batch_end"] = function(_, outputs) ended[#ended + 1] = outputs end
      reported(function()
        local trainer = tiny.trainer { strategy = "ddp" }
        trainer[word](trainer, net, tiny.batches({ 1, 2 }, { 4 }))
      end)
      assert.same({ 103, 104 }, ended)
    end
  end)

  it("are left out where the step returned nothing", function()
    local net, count = Line(), 0
    function net.training_step() return nil end
    function net.training_step_end() count = count + 1 end
    reported(function() tiny.trainer():fit(net, tiny.same(2)) end)
    assert.equal(0, count)
  end)
end)

describe("init_ddp_connection", function()
  it("is refused with the word cluster_environment", function()
    local net = tiny.Line()
    function net.init_ddp_connection() end
    assert.matches("Line: nothing calls 'init_ddp_connection'; write lt.strategies.DDP{"
      .. "cluster_environment = ...}",
      tiny.error_of(function() tiny.trainer():fit(net, tiny.same(1)) end))
  end)
end)
