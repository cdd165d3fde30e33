--- stdlib/dist/init.lua: lt.dist: launching ranks, and communication between them.
--
-- Outside of a launch the world size is 1, and all functions work.
local Group = require "ltrain.dist.Group"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local rank_zero = require "ltrain.dist.rank_zero"
local restarts = require "ltrain.core.restarts"
local strict_arity = require "ltrain.core.strict_arity"

local d = c.dist

local dist = { split = collectives.split }

-- What is loaded when it is asked for.
local LATER <const> = {
  DistributedOptimizer = function() return require "ltrain.dist.DistributedOptimizer" end,
  batch = function() return require "ltrain.dist.batch" end,
  ddp = function() return require "ltrain.dist.ddp".wrap end,
  hooks = function() return require "ltrain.dist.hooks" end,
  launch = function() return require "ltrain.dist.launch" end,
}

function Group._batch(...) return dist.batch(...) end

for name in next, collectives.places do dist[name] = collectives[name] end
for name, fn in next, rank_zero do dist[name] = fn end

--- Returns the ranks as a grid of named dims, `mesh({2, 4}, {"replicate", "tensor"})`: see Meshes.
--- The sizes multiply to the number of ranks. All ranks must call it.
function dist.mesh(sizes, names)
  return require "ltrain.dist.Mesh"(config.argument(sizes, "table", "dist.mesh", "sizes"),
    config.argument(names, "table", "dist.mesh", "names"))
end

local FROM <const> = {
  from = { type = "integer", default = 0, min = 0, doc = "the source rank" },
}

--- Copies parameters and buffers from a rank to all: those of a module, or the tensors of a table
--- (a state_dict, a list of parameters). Option: from (0), the source rank. All ranks must call it;
--- a Trainer and `dist.ddp` do it by themselves.
function dist.broadcast_parameters(x, options)
  local o = config.check(options, FROM, "dist.broadcast_parameters")
  if type(x) ~= "table" then
    errors.blame("dist.broadcast_parameters: needs a module or a table of tensors: got %s",
      errors.show(x))
  end
  require "ltrain.dist.broadcast_parameters".all(x, o.from)
end

--- Copies the state of an optimizer, and the options of its groups, from a rank to all. Option:
--- from (0), the source rank. All ranks must call it.
function dist.broadcast_optimizer_state(optimizer, options)
  local o = config.check(options, FROM, "dist.broadcast_optimizer_state")
  require "ltrain.dist.check_optimizer"(optimizer, "dist.broadcast_optimizer_state")
  local is_source = d.rank() == o.from
  local saved = collectives.broadcast(is_source and optimizer:state_dict() or nil,
    { from = o.from })
  if not is_source then optimizer:load_state_dict(saved) end
end

--- Returns the number of this process among those of its machine, from 0.
function dist.local_rank()
  return d.world().local_rank
end

--- Returns the rank of this process, from 0.
function dist.rank()
  return d.rank()
end

--- Returns a table that describes the job and this process: backend, rank, ranks, local_rank and
--- more. `incarnation` counts how often a launcher has started the ranks again (0: they were not),
--- `reason` says why ("").
function dist.world()
  local world <const> = d.world()
  world.incarnation, world.reason = restarts.incarnation, restarts.reason
  return world
end

--- Returns the number of ranks.
function dist.world_size()
  return d.size()
end

--- Registers a class below lt.dist.hooks.Hook: `ddp_comm_hook = name` then creates an object of it.
function dist.register_comm_hook(name, class)
  return require "ltrain.dist.hooks.registry".register(name, class)
end

--- Registers a communication backend: `path` is a shared object that exports lt_backend_open
--- (docs/adding.md). A cluster environment refers to it as its `comm`; a backend that transfers
--- memory between devices is used for this from then on.
function dist.register_comm(name, path)
  d.register_comm(config.argument(name, "string", "dist.register_comm", "name"),
    config.argument(path, "string", "dist.register_comm", "path"))
end

local function names_of(self)
  local names = {}
  for name in next, self do names[#names + 1] = name end
  for name in next, LATER do
    if not rawget(self, name) then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local function find(self, name)
  if LATER[name] then
    self[name] = strict_arity.fn(LATER[name](), name)
    return self[name]
  end
  errors.blame("dist: there is no '%s'%s", tostring(name),
    errors.in_place_of(name, "dist", names_of(self)))
end

return setmetatable(strict_arity.all(dist), {
  __index = find,
  __pairs = function(self) return next, names_of(self) end,
})
