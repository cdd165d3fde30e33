--- stdlib/trainer/setup/placement.lua: resolves where a Trainer runs: accelerator, devices, ranks,
--- strategy, precision.
local Strategy = require "ltrain.strategies.Strategy"
local accelerator_of = require "ltrain.trainer.setup.accelerator"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local debug_rank = require "ltrain.dist.debug_rank"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local join = require "ltrain.clusters.join"
local option_fields = require "ltrain.trainer.setup.option_fields"
local option_rules = require "ltrain.trainer.setup.option_rules"
local precision = require "ltrain.strategies.precision"
local registry = require "ltrain.strategies.registry"

local refuse <const> = option_rules.refuse

local placement = {}

-- What is wrong with another number of ranks than those that stay after the first loop.
local function of_first_loop(world)
  return ("the %d of the first loop stay until the script ends, because a device that was used "
    .. "does not survive another fork: use as many in every loop"):format(world.ranks)
end

-- How many ranks a machine is to have; nil where the options leave it open. On the CPU the user
-- says it: every core already works for one rank. Of other devices each is a rank's.
local function wanted_devices(o)
  local devices, numbers = o.devices, type(o.accelerator) == "table" and o.accelerator.devices
  if devices == "auto" and dist.world().ranks > 1 then return nil end
  if numbers then return o.accelerator.ranks or #numbers end
  if devices == "auto" then return nil end
  local count = math.tointeger(tonumber(devices))
  if type(devices) == "table" or type(devices) == "string" and devices:find "," then
    refuse("devices", devices, "the CPU has no device numbers: write devices = N, the number of "
      .. "ranks")
  elseif count == -1 then
    refuse("devices", devices, "the CPU has no number of devices: write devices = N, the number "
      .. "of ranks")
  elseif not count or count < 1 then
    refuse("devices", devices, "must be a number of ranks or 'auto'")
  elseif count > c.dist.max_ranks then
    refuse("devices", devices, ("at most %d ranks can be one job"):format(c.dist.max_ranks))
  end
  return count
end

-- The same under a strategy, which may have all devices of a machine in one rank.
local function wanted_ranks(o, strategy)
  local devices = wanted_devices(o)
  if not (strategy and strategy.has_all_devices) then
    if devices == -1 then
      refuse("devices", o.devices, "how many there are is known when a process opens them: write "
        .. "how many ranks")
    end
    return devices
  end
  local numbers = type(o.accelerator) == "table" and o.accelerator.devices
  strategy.device_count = devices or numbers and #numbers or 1
  return o.num_nodes > 1 and 1 or nil
end

-- Ranks were started by another program (mpirun, srun, lt.dist.launch): the options must agree.
local function check_world(o, devices, world)
  local wanted = devices and devices * o.num_nodes or world.ranks
  if wanted == world.ranks then return end
  if world.stays then
    errors.blame("Trainer: devices = %d x num_nodes = %d is %d ranks, but %s", devices,
      o.num_nodes, wanted, of_first_loop(world))
  end
  errors.blame("Trainer: devices = %d x num_nodes = %d is %d ranks, but the launcher started %d: "
    .. "leave devices out, or start %d", devices, o.num_nodes, wanted, world.ranks, wanted)
end

-- How many ranks this process is to start or is part of.
local function count_ranks(o, strategy)
  local devices = wanted_ranks(o, strategy)
  local world = dist.world()
  if world.ranks > 1 then
    check_world(o, devices, world)
    return world.ranks
  elseif o.num_nodes > 1 then
    refuse("num_nodes", o.num_nodes, "ranks on several machines are started by mpirun or srun, or "
      .. "by `ltrain run --launcher mpi --hosts a,b`")
  end
  return devices or 1
end

-- `options` go over those that the name was registered with.
local function by_name(name, options)
  local row = registry.find(name:lower())
  if row then
    local all = {}
    for key, value in next, row.params do all[key] = value end
    for key, value in next, options or {} do all[key] = value end
    return row.class(all)
  end
  local names = registry.available_strategies()
  local absent = require "ltrain.compat.strategies" -- only those who say such a name pay for it
  refuse("strategy", name, absent(name:lower()) or ("must be one of auto, %s%s"):format(
    table.concat(names, ", "), errors.did_you_mean(name:lower(), names)))
end

-- { "local_sgd", period = 8 }: a name, and options.
local function from_table(strategy)
  local options = {}
  for key, value in next, strategy do
    if key ~= 1 then options[key] = value end
  end
  if type(strategy[1]) ~= "string" then
    errors.blame("Trainer: strategy: a table is a name and options, like {'local_sgd', period = "
      .. "8}: got %s in the name's place", errors.show(strategy[1]))
  end
  return by_name(strategy[1], options)
end

-- The strategy that the option says; nil for "auto", which depends on the number of ranks.
local function strategy_of(o)
  local strategy = o.strategy
  if class.is_a(strategy, Strategy) then return strategy end
  local is_plain = type(strategy) == "table" and getmetatable(strategy) == nil
  if is_plain then return from_table(strategy) end
  if type(strategy) ~= "string" then
    refuse("strategy", strategy, "must be a name, a table of a name and options, or an object "
      .. "below lt.Strategy")
  end
  return strategy:lower() ~= "auto" and by_name(strategy) or nil
end

-- The strategy of one process that opens all of several devices; nil: the number of ranks decides.
local function of_several(o)
  local accelerator = o.accelerator
  local several = accelerator and accelerator.opens_all and accelerator.ranks ~= 1
  return several and dist.world().ranks == 1 and by_name "xla" or nil
end

-- Parts of the strategy that the Trainer's options name, each once.
local function given_parts(trainer, o)
  local parts = {}
  if o.plugins ~= nil then parts = require "ltrain.compat.plugins".read(trainer, o.plugins) end
  if o.accelerator then parts.accelerator = o.accelerator end
  if o.precision ~= nil then
    if parts.precision then
      errors.blame("Trainer: precision and plugins give a precision each: give one of them")
    end
    parts.precision = precision.plugin(o.precision)
  end
  return parts
end

-- The environment that a script names has its ranks join before they are counted.
local function join_world(environment, o)
  if not environment then return end
  environment = Strategy.make_part("cluster_environment", environment, "Trainer")
  local joined, message = join(environment,
    { devices = wanted_devices(o), num_nodes = o.num_nodes })
  if joined == nil then errors.blame("Trainer: %s", message) end
end

--- Checks devices, accelerator and nodes; sets trainer.strategy, two of its parts as fields of the
--- trainer, what the precision is called, and who this rank is.
function placement.set(trainer, o)
  local strategy = strategy_of(o)
  if strategy and o.accelerator == "auto" then
    o.accelerator = strategy.accelerator_kind or o.accelerator
  end
  o.accelerator = accelerator_of(o.accelerator, o.devices)
  strategy = strategy or of_several(o)
  local parts = given_parts(trainer, o)
  join_world(parts.cluster_environment or strategy and strategy.cluster_environment, o)
  local ranks = count_ranks(o, strategy)
  strategy = strategy or by_name(ranks > 1 and "ddp" or "single_device")
  strategy:combine(parts)
  strategy:configure(ranks, o)
  local replaced
  strategy.precision, replaced = precision.on_device(strategy.precision, strategy.root_device)
  if replaced then trainer:note(replaced) end
  for _, text in ipairs(strategy.notes or {}) do trainer:note(text) end
  option_fields.fix(trainer, "strategy", strategy)
  trainer.precision_plugin, trainer.scaler = strategy.precision, strategy.precision.scaler
  option_fields.fix(trainer, "accelerator", strategy.accelerator)
  option_fields.fix(trainer, "precision", strategy.precision.name)
  placement.note_rank(trainer)
end

--- A Trainer may be older than ranks that stay.
function placement.check_ranks(trainer, what)
  debug_rank.check(trainer.world_size)
  local world = dist.world()
  if not world.stays or trainer.world_size == world.ranks then return end
  errors.blame("%s: this Trainer is for %d rank%s, but %s", what, trainer.world_size,
    trainer.world_size == 1 and "" or "s", of_first_loop(world))
end

--- Copies who this process is into the fields that scripts read.
function placement.note_rank(trainer)
  for _, name in ipairs { "global_rank", "local_rank", "node_rank", "world_size",
    "is_global_zero" } do
    trainer[name] = trainer.strategy[name]
  end
end

return placement
