-- spec/strategies/registry_spec.lua: names of strategies, and strategies that scripts register.
local class = require "ltrain.core.class"
local lt = require "ltrain"
local error_of = require("spec.trainer.tiny").error_of

local strategies = lt.strategies

local function strategy_of(o) return lt.Trainer(o).strategy end

describe("lt.strategies.available_strategies", function()
  it("lists names that the Trainer takes, sorted", function()
    local names = strategies.available_strategies()
    local sorted = table.move(names, 1, #names, 1, {})
    table.sort(sorted)
    assert.same(sorted, names)
    for _, name in ipairs(names) do
      local row = strategies.get(name) -- those of XLA need its plugin: spec/xla/devices_spec.lua
      if row.class ~= strategies.XLA and row.params.device ~= "xla" then
        assert.is_true(class.is_a(strategy_of { strategy = name }, lt.Strategy), name)
      end
    end
  end)

  it("has those of Lightning that mean something here", function()
    local known = {}
    for _, name in ipairs(strategies.available_strategies()) do known[name] = true end
    for _, name in ipairs { "single_device", "ddp", "ddp_fork", "ddp_notebook",
      "ddp_find_unused_parameters_true", "ddp_fork_find_unused_parameters_false",
      "ddp_notebook_find_unused_parameters_true", "dp", "ddp2",
      "horovod" } do
      assert.is_true(known[name], name)
    end
  end)
end)

describe("a strategy of one device of XLA", function()
  it("is a process on the first device of that kind, by either name", function()
    for _, name in ipairs { "single_xla", "single_tpu" } do
      local row = strategies.get(name)
      assert.equal(strategies.SingleDevice, row.class)
      assert.same({ device = "xla" }, row.params)
    end
  end)
end)

describe("a strategy of several devices of XLA", function()
  it("is a process, by all names that Lightning has had for it", function()
    for _, name in ipairs { "xla", "xla_debug", "tpu_spawn", "tpu_spawn_debug", "xla_fsdp" } do
      local row = strategies.get(name)
      assert.equal(strategies.XLA, row.class)
      assert.equal(name == "xla_fsdp" or nil, row.params.shard_parameters)
      assert.equal(name:find "_debug$" and true or nil, row.params.debug)
    end
  end)
end)

describe("lt.strategies.get", function()
  it("says what stands behind a name", function()
    local row = strategies.get "ddp_find_unused_parameters_true"
    assert.equal(strategies.DDP, row.class)
    assert.same({ find_unused_parameters = true }, row.params)
    assert.equal("ddp_find_unused_parameters_true", row.name)
    assert.equal(strategies.SingleDevice, strategies.get("Single_Device").class)
  end)

  it("names the nearest", function()
    assert.matches("strategies.get: there is no 'ddq'; did you mean 'ddp'%?",
      error_of(strategies.get, "ddq"))
  end)
end)

describe("lt.strategies.register", function()
  local Mine = strategies.DDP:extend("Mine")

  after_each(function()
    pcall(strategies.remove, "mine")
    pcall(strategies.remove, "ddp")
  end)

  it("makes a name of a class and options", function()
    strategies.register("mine", Mine, { description = "my own", params = { bucket_cap_mb = 3 } })
    assert.equal("my own", strategies.get("mine").description)
    local strategy = strategy_of { strategy = "Mine" }
    assert.equal(Mine, getmetatable(strategy))
    assert.equal(3, strategy.bucket_cap_mb)
  end)

  it("wants override for a name that is taken", function()
    strategies.register("mine", Mine)
    assert.matches("strategies.register: 'mine' exists already: give it another name, or "
      .. "override = true", error_of(strategies.register, "mine", Mine))
    strategies.register("ddp", Mine, { override = true })
    assert.equal(Mine, getmetatable(strategy_of { strategy = "ddp" }))
    strategies.remove "ddp"
    assert.equal(strategies.DDP, getmetatable(strategy_of { strategy = "ddp" }))
  end)

  it("refuses what is not a strategy", function()
    assert.matches("strategies.register: mine: must be a class below lt.Strategy: got class Module",
      error_of(strategies.register, "mine", lt.Module))
    assert.matches("strategies.register: mine: must be a class below lt.Strategy: got an object of "
      .. "class Mine", error_of(strategies.register, "mine", Mine()))
  end)
end)

describe("lt.strategies.remove", function()
  it("forgets a registered name, and no other", function()
    strategies.register("mine", strategies.DDP)
    strategies.remove "mine"
    assert.matches("'mine' was not registered", error_of(strategies.remove, "mine"))
    assert.matches("'ddp' is built in", error_of(strategies.remove, "ddp"))
    assert.matches("strategy = 'mine': must be one of auto, .*ddp",
      error_of(lt.Trainer, { strategy = "mine" }))
  end)
end)

describe("Trainer{strategy = name of elsewhere}", function()
  local WORDS <const> = {
    hpu_parallel = "accelerator = 'hpu'", hpu_single = "write 'ddp'",
    ddp_spawn = "'ddp', which forks",
    ddp_spawn_find_unused_parameters_true = "'ddp', which forks",
    colossalai = "write 'fsdp'",
    bagua = "gradient_allreduce: 'ddp'", hivemind = "write 'ddp'.*`mpirun %-n N ltrain run",
  }

  for name, words in pairs(WORDS) do
    it(("says the right word for '%s'"):format(name), function()
      assert.matches(("Trainer: strategy = '%s': .*%s"):format(name, words),
        error_of(lt.Trainer, { strategy = name }))
    end)
  end
end)
