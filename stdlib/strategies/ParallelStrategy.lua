--- stdlib/strategies/ParallelStrategy.lua: several ranks, each a process that runs the loop; the
--- base class of DDP, LocalSGD and Sharded.
--
-- On one machine the ranks are forked when fit (validate, ...) starts, so that each has the
-- closures, upvalues and values of the script; rank 0 is the script's own process. If the ranks
-- exist already (mpirun, srun, lt.dist.launch), they are joined. Ranks on devices that cannot be
-- used after a fork are kept, and later loops join them. All start with rank 0's parameters and
-- buffers. A subclass defines how gradients and weights are distributed: at least reduce_gradients,
-- and if ranks have different values, is_replicated, module_parts, optimizer_parts and the
-- methods that load state. What it shards (sharded/Sharding.lua) is `self.sharding`: steps and
-- gradients are then those of shards.
local Strategy = require "ltrain.strategies.Strategy"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local cpu_affinity = require "ltrain.dist.cpu_affinity"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local fork_processes = require "ltrain.dist.fork_processes"
local gather_parts = require "ltrain.dist.gather_parts"
local rank_device = require "ltrain.strategies.rank_device"
local rank_options = require "ltrain.strategies.rank_options"
local same_options = require "ltrain.strategies.same_options"
local with_timeout = require "ltrain.dist.with_timeout"

local ParallelStrategy = Strategy:extend("ParallelStrategy")

--- Its options; those of a subclass are ParallelStrategy.rows { ... }.
ParallelStrategy.options = rank_options.rows()

--- Returns rows of options for a subclass: its own and those of all strategies of several ranks.
ParallelStrategy.rows = rank_options.rows

--- Mine{timeout = 60, checkpoint_io = ..., ...}, a subclass with reduce_gradients
function ParallelStrategy:init(options)
  local o = rank_options.check(self, options)
  rank_options.take(self, o)
  self:note_world()
  return o -- for the init of a subclass
end

--- Takes the number of ranks and the Trainer's options.
function ParallelStrategy:configure(ranks, o)
  self:note_world() -- it may have been joined since
  self.ranks, self.world_size = ranks, ranks
  self.root_device = self.accelerator:device(self.local_rank)
  -- Several Trainers may use it: each sets its own options.
  self.timeout = self.own_timeout or o.timeout
  self.fork_with_threads = self.forks_with_threads
  if self.fork_with_threads == nil then self.fork_with_threads = o.fork_with_threads end
end

--- Sets the rank numbers of this process from its world.
function ParallelStrategy:note_world()
  local world = dist.world()
  self.world_size, self.global_rank = world.ranks, world.rank
  self.local_rank, self.node_rank = world.local_rank, world.node_rank
  self.is_global_zero = world.rank == 0
end

--- Runs body() on every rank and returns rank 0's result (on a rank that was joined: its own).
function ParallelStrategy:launch(what, body, folder)
  local function as_rank()
    self:note_world()
    self:take_device()
    local _ <close> = self:setup_mesh()
    local _ <close> = self.world_size > 1 and cpu_affinity(self.root_device) or nil
    return body()
  end
  if self.ranks == 1 then return as_rank() end
  if dist.world_size() > 1 then
    local _ <close> = with_timeout(self.timeout)
    same_options(self)
    return as_rank()
  end
  return fork_processes(self.ranks, as_rank, {
    what = what, folder = folder, timeout = self.timeout, device = self.root_device,
    fork_with_threads = self.fork_with_threads,
  })
end

--- Called on every rank at the start of a run: sets the device of this rank.
function ParallelStrategy:take_device()
  self.root_device = rank_device(self.accelerator, self.local_rank)
end

--- Called on every rank at the start of a run: makes what ranks need to work on the same samples
--- together; returns a value that is closed at the end (dist/data_ranks.lua).
function ParallelStrategy:setup_mesh() end

local function name_of(self) return "strategies." .. getmetatable(self).__name end

local HOW_TO_USE <const> = {
  mpi = "start them with `mpirun -n N ltrain run SCRIPT`",
  ucx = "start them with `torchrun --nproc_per_node N --no-python ltrain run SCRIPT`, or with "
    .. "MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE",
  shm = "shm is for ranks that are forked: start the script without a launcher",
}

-- Without NCCL data of GPUs goes through host memory, which a script may not want.
local function check_nccl(self)
  local device <const> = self.root_device
  local link, why = c.dist.link(device)
  if link == "nccl" then return end
  errors.blame("%s: process_group_backend = 'nccl', but %s", name_of(self),
    device:find "^cuda" and (why or "it is not in this build")
    or ("the ranks are on the device '%s': nccl is between GPUs"):format(device))
end

-- The script may require a comm backend.
local function check_backend(self)
  local backend, wanted = dist.world().backend, self.process_group_backend
  if not wanted or wanted == backend then return end
  if wanted == "nccl" then return check_nccl(self) end
  errors.blame("%s: process_group_backend = '%s', but these ranks communicate over %s: "
    .. "%s", name_of(self),
    wanted, backend, HOW_TO_USE[wanted])
end

--- Broadcasts rank 0's parameters and buffers.
function ParallelStrategy:setup(trainer)
  Strategy.setup(self, trainer)
  if self.world_size == 1 then return end
  check_backend(self)
  self:share_module(trainer.module)
end

--- Gives all ranks rank 0's parameters and buffers, but those that all have from one snapshot.
function ParallelStrategy:share_module(module)
  local snapshots = module.trainer.running.snapshots
  broadcast_parameters.module(module, snapshots and snapshots:restored(module) or nil)
end

--- Rejects a module with configure_ddp, which only DDP calls.
function ParallelStrategy:setup_module(module)
  if module.configure_ddp then
    errors.blame("%s: configure_ddp of the module is not used: write strategy = 'ddp', or remove "
      .. "it", name_of(self))
  end
  return module
end

--- A subclass must define it. On one rank there is nothing to reduce.
function ParallelStrategy:reduce_gradients(optimizer, total, missing, weight)
  if self.world_size == 1 then
    return Strategy.reduce_gradients(self, optimizer, total, missing, weight)
  end
  errors.blame("%s: reduce_gradients is not defined: it must reduce gradients over all ranks",
    name_of(self))
end

-- What `get(self, object, ...)` returns, complete on rank 0: gathered, unless every rank has it.
local function complete(self, part, get, object, ...)
  if self.world_size == 1 then return get(self, object, ...) end
  if not self:is_replicated(part) then return gather_parts(get(self, object, ...)) end
  return self.is_global_zero and get(self, object, ...) or nil
end

--- Gathers the state on rank 0, one tensor at a time, if the ranks have parts of it.
function ParallelStrategy:module_state(module)
  return complete(self, "parameter", self.module_parts, module)
end

function ParallelStrategy:optimizer_state(optimizer, own_tensors)
  return complete(self, "optimizer", self.optimizer_parts, optimizer, own_tensors)
end

-- Steps of what is sharded.

--- The strategy's Sharding; nil: nothing is sharded.
ParallelStrategy.sharding = nil

--- With stage 3 parameters that are in no unit are here until the result is closed.
function ParallelStrategy:forward_scope()
  local outer, sharding = Strategy.forward_scope(self), self.sharding
  return sharding and sharding:forward_scope(outer) or outer
end

--- With stages 2 and 3 gradients are reduced to their shards as backward passes.
function ParallelStrategy:backward(loss, weight, ...)
  if not self.sharding then return Strategy.backward(self, loss, weight, ...) end
  local more = table.pack(...)
  self.sharding:backward(function()
    Strategy.backward(self, loss, weight, table.unpack(more, 1, more.n))
  end)
end

--- The graph of these collectives has what is sharded in it too.
function ParallelStrategy:end_collectives()
  local function finish() Strategy.end_collectives(self) end
  if self.sharding then self.sharding:end_collectives(finish) else finish() end
end

--- This rank's shards, where these alone have gradients.
function ParallelStrategy:param_groups(optimizer)
  return self.sharding and self.sharding:param_groups(optimizer) or optimizer.param_groups
end

--- This rank's slice of what was reduced to shards, at its place in the whole.
function ParallelStrategy:accumulated_gradient(parameter)
  return self.sharding and self.sharding:accumulated_gradient(parameter) or parameter.grad
end

--- Steps this rank's shards, and gathers the new parameters where they are whole.
function ParallelStrategy:optimizer_step(optimizer, update)
  if self.sharding then self.sharding:step(optimizer, update) else update() end
end

--- Gathers what is sharded.
function ParallelStrategy:gather_parameters()
  return self.sharding and self.sharding:gather() or nil
end

-- Ranks.

function ParallelStrategy:add(numbers) return collectives.add(numbers) end

function ParallelStrategy:sync_buffers(module)
  if self.world_size > 1 and self.broadcast_buffers ~= false then
    broadcast_parameters.buffers(module)
  end
end

--- Ranks that were joined wait for one rank of their machine (with `once`, of all) to prepare;
--- forked ranks need not, as their parent prepares before it forks.
function ParallelStrategy:prepare_data(prepare, once)
  local prepares = self.local_rank == 0
  if once then prepares = self.global_rank == 0 end
  if prepares then dist.long(prepare) end
  dist.barrier()
end

function ParallelStrategy:reduce(value, how)
  return dist.all_reduce(value, { op = how or "mean" })
end

function ParallelStrategy:broadcast(value, source)
  return dist.broadcast(value, { from = source or 0 })
end

function ParallelStrategy:all_gather(value) return dist.all_gather(value) end

function ParallelStrategy:barrier() dist.barrier() end

function ParallelStrategy:reduce_boolean(condition, all)
  local count = dist.all_reduce(condition and 1 or 0, { op = "sum" })
  if all == false then return count > 0 end
  return count == self.world_size
end

return ParallelStrategy
