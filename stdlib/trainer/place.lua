--- stdlib/trainer/place.lua: where a Trainer runs: accelerator, ranks, strategy, precision.
local Strategy = require "ltrain.core.Strategy"
local class = require "ltrain.core.class"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local option_rules = require "ltrain.trainer.option_rules"

local refuse <const> = option_rules.refuse

local place = {}

local function check_accelerator(o)
  local name = o.accelerator:lower()
  if name == "auto" or name == "cpu" then return end
  local known = { gpu = true, cuda = true, mps = true, tpu = true }
  refuse("accelerator", o.accelerator, known[name]
    and "not in this build: it trains on the CPU ('auto' or 'cpu')"
    or "must be 'auto' or 'cpu'" .. errors.did_you_mean(name, { "auto", "cpu", "gpu", "cuda" }))
end

-- How many ranks a machine is to have; nil where the options leave it open. On the CPU the user
-- says it: every core already works for one rank.
local function wanted_devices(o)
  local devices = o.devices
  if devices == "auto" then return nil end
  local count = math.tointeger(tonumber(devices))
  if type(devices) == "table" then
    refuse("devices", devices, "the CPU has no device numbers: write devices = N, the number of "
      .. "ranks")
  elseif count == -1 then
    refuse("devices", devices, "the CPU has no number of devices: write devices = N, the number "
      .. "of ranks")
  elseif not count or count < 1 then
    refuse("devices", devices, "must be a number of ranks or 'auto'")
  end
  return count
end

-- Ranks were started by somebody else (mpirun, srun, lt.dist.launch): the options must agree.
local function check_world(o, devices, world)
  local wanted = devices and devices * o.num_nodes or world.ranks
  if wanted == world.ranks then return end
  errors.blame("Trainer: devices = %d x num_nodes = %d is %d ranks, but the launcher started %d: "
    .. "leave devices out, or start %d", devices, o.num_nodes, wanted, world.ranks, wanted)
end

-- How many ranks this process is to start or is part of.
local function count_ranks(o)
  local devices = wanted_devices(o)
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

local function need_one(o, ranks)
  if ranks == 1 then return end
  errors.blame("Trainer: strategy = 'single_device' is one rank: got %d (devices = %s)", ranks,
    errors.show(o.devices))
end

-- Names of strategies, and what makes them.
local NAMES <const> = {
  auto = function(_, ranks)
    return ranks > 1 and "DDP" or "SingleDevice"
  end,
  single_device = function(o, ranks)
    need_one(o, ranks)
    return "SingleDevice"
  end,
  ddp = function() return "DDP" end,
  ddp_fork = function() return "DDP" end,
  ddp_notebook = function() return "DDP" end,
  ddp_spawn = function(o)
    refuse("strategy", o.strategy, "comes with CUDA, where a forked process cannot use the "
      .. "devices; here 'ddp' forks at fit, and closures just work")
  end,
}

local function make_strategy(o, ranks)
  if class.is_a(o.strategy, Strategy) then return o.strategy end
  if type(o.strategy) ~= "string" then
    refuse("strategy", o.strategy, "must be a name or an object below lt.Strategy")
  end
  local choose = NAMES[o.strategy:lower()]
  if not choose then
    local names = {}
    for name in pairs(NAMES) do names[#names + 1] = name end
    table.sort(names)
    refuse("strategy", o.strategy, ("must be one of %s%s"):format(table.concat(names, ", "),
      errors.did_you_mean(o.strategy:lower(), names)))
  end
  return require("ltrain.strategies." .. choose(o, ranks)) {}
end

--- Checks devices, accelerator and nodes; sets trainer.strategy, trainer.precision_plugin and who
--- this rank is.
function place.set(trainer, o)
  check_accelerator(o)
  local ranks = count_ranks(o)
  trainer.strategy = make_strategy(o, ranks)
  trainer.strategy:configure(ranks, o)
  trainer.precision_plugin = require "ltrain.precision".plugin(o.precision)
  place.note_rank(trainer)
end

--- Copies who this process is into the fields that scripts read.
function place.note_rank(trainer)
  for _, name in ipairs { "global_rank", "local_rank", "node_rank", "world_size",
    "is_global_zero" } do
    trainer[name] = trainer.strategy[name]
  end
end

return place
