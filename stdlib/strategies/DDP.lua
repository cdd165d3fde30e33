--- stdlib/strategies/DDP.lua: every rank runs the loop (distributed data parallel).
--
-- On one machine the ranks are forked where fit (validate, ...) begins, so that closures, upvalues
-- and what the script has built are there in each; rank 0 is the script's own process. Where the
-- ranks are there already (mpirun, srun, lt.dist.launch) they are joined.
local Strategy = require "ltrain.strategies.Strategy"
local c = require "ltrain.c"
local ddp = require "ltrain.dist.ddp"
local ddp_options = require "ltrain.strategies.ddp_options"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local forked = require "ltrain.dist.forked"
local patience = require "ltrain.dist.patience"
local replicate = require "ltrain.dist.replicate"

local DDP = Strategy:extend("DDP")

--- What it is called with.
DDP.options = ddp_options.rows

--- DDP{timeout = 60, checkpoint_io = ..., ...}
function DDP:init(options)
  local o, notes = ddp_options.check(options)
  self:use_parts(o)
  for _, name in ipairs(ddp_options.kept) do self[name] = o[name] end
  self.own_timeout, self.forks_with_threads = o.timeout, o.fork_with_threads
  self.comm_hook, self.notes = o.ddp_comm_hook, notes
  self:note_world()
end

--- The Trainer's options, and how many ranks they mean.
function DDP:configure(ranks, o)
  self:note_world() -- it may have been joined since
  self.ranks, self.world_size = ranks, ranks
  self.root_device = self.accelerator:device(self.local_rank)
  -- It may serve several Trainers: their options do not stay.
  self.timeout = self.own_timeout or o.timeout
  self.fork_with_threads = self.forks_with_threads
  if self.fork_with_threads == nil then self.fork_with_threads = o.fork_with_threads end
end

--- Copies who this process is from the world it is part of.
function DDP:note_world()
  local world = dist.world()
  self.world_size, self.global_rank = world.ranks, world.rank
  self.local_rank, self.node_rank = world.local_rank, world.node_rank
  self.is_global_zero = world.rank == 0
end

--- Runs body() in every rank; returns what it returns on rank 0 (a joined rank: its own).
function DDP:launch(what, body, folder)
  local function as_rank()
    self:note_world()
    return body()
  end
  if self.ranks == 1 then return as_rank() end
  if dist.world_size() > 1 then
    local _ <close> = patience(self.timeout)
    return as_rank()
  end
  return forked(self.ranks, as_rank, {
    what = what, folder = folder, timeout = self.timeout,
    fork_with_threads = self.fork_with_threads,
  })
end

-- The script says by which comm ranks are to talk.
local function check_backend(wanted)
  local backend = dist.world().backend
  if not wanted or wanted == backend then return end
  errors.blame("strategies.DDP: process_group_backend = '%s', but these ranks talk over %s: %s",
    wanted, backend, wanted == "mpi" and "start them with `mpirun -n N ltrain run SCRIPT`"
    or "shm is for ranks that are forked: leave mpirun out")
end

--- All ranks begin with rank 0's parameters and buffers.
function DDP:setup(trainer)
  Strategy.setup(self, trainer)
  if dist.world_size() == 1 then return end
  check_backend(self.process_group_backend)
  replicate.module(trainer.module)
end

--- The object by which gradients are shared: see lt.dist.ddp.
function DDP:configure_ddp(module)
  return ddp.class(module, { bucket_cap_mb = self.bucket_cap_mb, comm_hook = self.comm_hook })
end

function DDP:add(numbers) return c.dist.add(numbers) end

function DDP:sync_buffers(module)
  if dist.world_size() > 1 and self.broadcast_buffers ~= false then replicate.buffers(module) end
end

--- Ranks that are there already wait for the one of their machine (of all, with `once`) that
--- prepares; a script's own process prepares before it forks.
function DDP:prepare_data(prepare, once)
  local prepares = self.local_rank == 0
  if once then prepares = self.global_rank == 0 end
  if prepares then dist.long(prepare) end
  dist.barrier()
end

function DDP:reduce(value, how) return dist.all_reduce(value, { op = how or "mean" }) end

function DDP:broadcast(value, source) return dist.broadcast(value, { from = source or 0 }) end

function DDP:all_gather(value) return dist.all_gather(value) end

function DDP:barrier() dist.barrier() end

function DDP:reduce_boolean(condition, all)
  local count = dist.all_reduce(condition and 1 or 0, { op = "sum" })
  if all == false then return count > 0 end
  return count == self.world_size
end

return DDP
