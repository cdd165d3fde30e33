--- stdlib/strategies/registry.lua: names of strategies, built-in and registered by scripts.
local Strategy = require "ltrain.strategies.Strategy"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local registry = {}

local DDP <const> = "every rank runs the loop on its share of the data; gradients are summed"

-- Built in: name -> class's file, description, options.
local BUILT_IN <const> = {
  single_device = { file = "SingleDevice", description = "one process, one device" },
  single_xla = { file = "SingleDevice", description = "one process, one device of XLA",
    params = { device = "xla" } },
  single_tpu = { file = "SingleDevice", description = "one process, one TPU",
    params = { device = "xla" } },
  xla_fsdp = { file = "XLA", params = { shard_parameters = true },
    description = "as xla, with parameters and the state of optimizers divided" },
  sharded = { file = "Sharded",
    description = "as ddp, with parameters, gradients and the state of optimizers divided" },
  model_parallel = { file = "ModelParallelStrategy",
    description = "groups of ranks compute one module together; between groups as ddp" },
  pipeline = { file = "Pipeline",
    description = "each rank has a stage of the module, through which microbatches go" },
  dp = { file = "DP", description = "one process, which divides each batch among its devices" },
  ddp2 = { file = "DDP2", description = "as dp within a machine, as ddp between machines" },
  horovod = { file = "Horovod", description = "as ddp, with the options of Horovod" },
  local_sgd = { file = "LocalSGD",
    description = "every rank steps by its own gradients; weights are averaged every few steps" },
  diloco = { file = "DiLoCo",
    description = "as local_sgd; an outer optimizer steps by the average change of the weights" },
}
-- Names of stages of Sharded, and the class whose options each takes.
local DIVIDED <const> = {
  "as ddp, with the state of optimizers divided among the ranks",
  "as ddp, with gradients and the state of optimizers divided",
  "as ddp, with parameters, gradients and the state of optimizers divided",
}
local STAGES <const> = { zero1 = { "Sharded", 1 }, ddp_sharded = { "Sharded", 2 },
  ddp_sharded_spawn = { "Sharded", 2 }, fsdp = { "FSDPStrategy", 3 },
  deepspeed = { "DeepSpeedStrategy", 2 }, deepspeed_stage_1 = { "DeepSpeedStrategy", 1 },
  deepspeed_stage_2 = { "DeepSpeedStrategy", 2 }, deepspeed_stage_3 = { "DeepSpeedStrategy", 3 } }
-- Those that keep what is divided elsewhere: the name of the stage, where, options.
local OFFLOADED <const> = {
  fsdp_cpu_offload = { "fsdp", "on the host", { cpu_offload = true } },
  deepspeed_stage_2_offload = { "deepspeed_stage_2", "on the host", { offload_optimizer = true } },
  deepspeed_stage_3_offload = { "deepspeed_stage_3", "on the host",
    { offload_optimizer = true, offload_parameters = true } },
  deepspeed_stage_3_offload_nvme = { "deepspeed_stage_3", "in files below nvme_path",
    { offload_optimizer = true, offload_parameters = true, offload_optimizer_device = "nvme",
      offload_params_device = "nvme" } },
}

local function add(name, row, where, options)
  local params = { stage = row[2] }
  for option, value in next, options or {} do params[option] = value end
  BUILT_IN[name] = { file = row[1], description = DIVIDED[row[2]] .. (where or ""),
    params = params }
end

for name, row in next, STAGES do add(name, row) end
for name, one in next, OFFLOADED do add(name, STAGES[one[1]], " and kept " .. one[2], one[3]) end
BUILT_IN.deepspeed.params = {} -- the config may say the stage
for _, name in ipairs { "xla", "xla_debug", "tpu_spawn", "tpu_spawn_debug" } do
  local debugs <const> = name:find "_debug$" and " and prints what was compiled" or ""
  BUILT_IN[name] = { file = "XLA", params = { debug = debugs ~= "" or nil },
    description = ("one process; XLA divides each batch among its devices%s"):format(debugs) }
end
for _, name in ipairs { "ddp", "ddp_fork", "ddp_notebook" } do
  BUILT_IN[name] = { file = "DDP", description = DDP }
  for _, truth in ipairs { true, false } do
    BUILT_IN[("%s_find_unused_parameters_%s"):format(name, truth)] = {
      file = "DDP", description = DDP, params = { find_unused_parameters = truth },
    }
  end
end

local REGISTER <const> = {
  description = { type = "string", default = "", doc = "one line that describes it" },
  override = { type = "boolean", default = false, doc = "replace a strategy of the same name" },
  params = { type = "table", default = {}, doc = "options to create it with" },
}

-- What scripts registered, by name: { class =, description =, params = }.
local registered = {}

-- The row of a name: { name =, class =, description =, params = }; nil when there is none.
function registry.find(name)
  local row = registered[name] or BUILT_IN[name]
  if not row then return nil end
  return {
    name = name, class = row.class or require("ltrain.strategies." .. row.file),
    description = row.description, params = row.params or {},
  }
end

--- Returns the sorted list of names that Trainer{strategy = name} accepts, besides "auto".
function registry.available_strategies()
  local all = {}
  for name in next, BUILT_IN do all[name] = true end
  for name in next, registered do all[name] = true end
  return tree.keys(all)
end

--- Returns {name =, class =, description =, params =} of a registered name; an unknown name is an
--- error.
function registry.get(name)
  config.argument(name, "string", "strategies.get", "the name")
  local row = registry.find(name:lower())
  if row then return row end
  errors.blame("strategies.get: there is no '%s'%s", name,
    errors.did_you_mean(name:lower(), registry.available_strategies()))
end

--- register("mine", Mine, {description = "...", params = {checkpoint_io = io}}): makes
--- Trainer{strategy = "mine"} equal to Mine{checkpoint_io = io}. For an existing name, `override`
--- is required.
function registry.register(name, own, options)
  config.argument(name, "string", "strategies.register", "the name")
  local o = config.check(options, REGISTER, "strategies.register")
  name = name:lower()
  if not class.is_class(own, Strategy) then
    errors.blame("strategies.register: %s: must be a class below lt.Strategy: got %s", name,
      errors.show(own))
  elseif name == "auto" or registry.find(name) and not o.override then
    errors.blame("strategies.register: '%s' exists already: give it another name%s", name,
      name ~= "auto" and ", or override = true" or "")
  end
  registered[name] = { class = own, description = o.description, params = o.params }
  return own
end

--- Removes a strategy that a script registered; a built-in one that it replaced is restored.
function registry.remove(name)
  config.argument(name, "string", "strategies.remove", "the name")
  name = name:lower()
  if not registered[name] then
    errors.blame("strategies.remove: '%s' %s", name, BUILT_IN[name]
      and "is built in" or "was not registered")
  end
  registered[name] = nil
end

return registry
