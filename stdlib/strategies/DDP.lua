--- stdlib/strategies/DDP.lua: distributed data parallel: every rank runs the loop on its part of
--- the data, and gradients are summed.
--
-- Each rank has a replica of the module and of the state of its optimizers. Gradients of all ranks
-- are summed in buckets before each optimizer step, so that all ranks take the same step: in
-- automatic optimization while the last backward of the step runs.
local OverlappedSteps = require "ltrain.dist.OverlappedSteps"
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local data_ranks = require "ltrain.dist.data_ranks"
local ddp = require "ltrain.dist.ddp"
local ddp_options = require "ltrain.strategies.ddp_options"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"
local rank_options = require "ltrain.strategies.rank_options"

local DDP = ParallelStrategy:extend("DDP")

--- Its options.
DDP.options = ddp_options.rows

--- DDP{timeout = 60, checkpoint_io = ..., ...}
function DDP:init(options) self:take_options(ddp_options.check(options)) end

--- Takes checked options, and a list of notes to report.
function DDP:take_options(o, notes)
  self.comm_hook, self.notes = o.ddp_comm_hook, notes
  rank_options.take(self, o)
  self:note_world()
end

-- The object that reduces gradients: of the module's configure_ddp, else of the strategy's.
local function make_ddp(self, module)
  local made = module.configure_ddp and ddp.make_for_loop(module.configure_ddp, module)
    or ddp.make_for_loop(self.configure_ddp, self, module)
  for _, name in ipairs { "backward", "sync" } do
    if type(made) ~= "table" or type(made[name]) ~= "function" then
      errors.blame("configure_ddp: must return an object with backward(loss, weight) and sync(): "
        .. "got %s%s", errors.show(made), type(made) == "table" and " without " .. name or "")
    end
  end
  return made
end

-- Whether buckets are the Reducer's, and nothing of a script's stands in for a part of it: the same
-- on all ranks.
local function overlaps(self)
  local reducer = self.ddp and self.ddp.reducer
  return reducer and reducer:can_overlap() and self.ddp.sync == ddp.class.sync
    and self.reduce_gradients == DDP.reduce_gradients
end

--- Creates the object that reduces gradients during fit.
function DDP:setup_module(module)
  local trains = self.world_size > 1 and module.trainer.state.fn == "fit"
  self.ddp = trains and make_ddp(self, module) or nil
  self.steps = overlaps(self) and OverlappedSteps(self.ddp.reducer) or nil
  return module
end

--- Returns an object with `backward(loss, weight)`, which accumulates gradients, and
--- `sync(parameters, total, missing, key)`, which replaces them by their weighted mean over all
--- ranks; by default lt.dist.ddp's. The module's configure_ddp takes precedence. New code overrides
--- reduce_gradients instead.
function DDP:configure_ddp(module)
  return ddp.class(module, { bucket_cap_mb = self.bucket_cap_mb, comm_hook = self.comm_hook,
    group = data_ranks.group() })
end

--- The gradients of the backward that comes are reduced while it runs.
function DDP:before_last_backward(optimizer, weight)
  if self.steps and self.ddp.backward == ddp.class.backward then
    self.steps:expect(optimizer, weight)
  end
end

function DDP:backward(loss, weight, ...)
  if not self.ddp then return ParallelStrategy.backward(self, loss, weight, ...) end
  local _ <close> = self.steps and self.steps:begin()
  self.ddp:backward(loss, weight, ...)
end

--- Waits for the gradients of all ranks.
function DDP:after_last_backward(optimizer, weight)
  return self.steps and self.steps:finish(optimizer, weight)
end

--- Replaces the gradients by their weighted mean over all ranks, reduced in buckets.
function DDP:reduce_gradients(optimizer, total, missing, weight)
  if self.steps and self.steps:take(optimizer, missing) then return end
  if self.ddp then
    self.ddp:sync(parameters_of(optimizer), total, missing, optimizer)
  else
    ParallelStrategy.reduce_gradients(self, optimizer, total, missing, weight)
  end
end

return DDP
