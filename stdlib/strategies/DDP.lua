--- stdlib/strategies/DDP.lua: distributed data parallel: every rank runs the loop on its part of
--- the data, and gradients are summed.
--
-- Each rank has a replica of the module and of the state of its optimizers. Gradients of all ranks
-- are summed in buckets before each optimizer step, so that all ranks take the same step: in
-- automatic optimization while the last backward of the step runs.
--
-- A hook of lt.dist.hooks compresses them on their way (`ddp_comm_hook`). What it keeps of each
-- rank, the residuals, is in checkpoints: every rank must call trainer:save_checkpoint then, and
-- after an error no checkpoint is saved (`save_on_exception`). On another number of ranks each
-- begins with an equal part of the sum of the residuals.
local OverlappedSteps = require "ltrain.dist.OverlappedSteps"
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local class = require "ltrain.core.class"
local data_ranks = require "ltrain.dist.data_ranks"
local ddp = require "ltrain.dist.ddp"
local ddp_options = require "ltrain.strategies.ddp_options"
local errors = require "ltrain.core.errors"
local gather_parts = require "ltrain.dist.gather_parts"
local hooks = require "ltrain.dist.hooks.registry"
local parameters_of = require "ltrain.core.parameters_of"
local parts = require "ltrain.core.parts"
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

-- The hook that compresses gradients, an object of lt.dist.hooks that keeps state; nil: there is
-- none.
local function hook_of(self)
  local reducer = self.ddp and self.ddp.reducer
  local hook = reducer and reducer.hook
  return hooks.is_object(hook) and hook.has_state and hook or nil
end

local function check_hook(self, trainer)
  local hook = hook_of(self)
  if not hook then return end
  if trainer.options.deterministic == "world" then
    errors.blame("strategies.DDP: deterministic = 'world' needs results that do not depend on the "
      .. "number of ranks, and with ddp_comm_hook = '%s' they do: remove one of them", hook.name)
  elseif data_ranks.is_shared() then -- what it keeps is saved by names of whole parameters
    errors.blame("strategies.%s: ddp_comm_hook = '%s' keeps state of whole parameters, of which "
      .. "ranks have parts here: write 'fp16' or 'bf16', which keep none", class.of(self).__name,
      hook.name)
  end
end

--- Creates the object that reduces gradients during fit. A hook begins without state.
function DDP:setup_module(module)
  local trains = self.world_size > 1 and module.trainer.state.fn == "fit"
  self.ddp = trains and make_ddp(self, module) or nil
  if trains then self.ended = nil end
  check_hook(self, module.trainer)
  if hook_of(self) then hook_of(self):reset() end
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
  local hook, scaler = hook_of(self), self.precision.scaler
  if hook and scaler then hook.loss_scale = scaler:get_scale() end
  if self.ddp then
    self.ddp:sync(parameters_of(optimizer), total, missing, optimizer)
  else
    ParallelStrategy.reduce_gradients(self, optimizer, total, missing, weight)
  end
end

--- What the hook keeps, with the residuals of each rank.
function DDP:state_dict(_)
  if self.ended ~= nil then return self.ended or nil end
  local hook = hook_of(self)
  if not hook then return nil end
  local saved = hook:state_dict(self.module)
  saved.ranks = parts.of_tree(saved.ranks)
  if not self.is_global_zero then saved.shared = {} end
  return saved
end

--- Restores it, if the hook is that of the checkpoint.
function DDP:load_state_dict(saved, _)
  local hook = hook_of(self)
  if hook and hook.name == saved.hook then return hook:load_state_dict(saved, self.module) end
  self.module.trainer:note(("strategies.DDP: the checkpoint has the state of ddp_comm_hook = '%s': "
    .. "it is not used %s"):format(saved.hook, hook and ("by '%s'"):format(hook.name) or "here"))
end

--- Gathers the state of the hook on rank 0, for checkpoints saved after the fit.
function DDP:end_training(_)
  if hook_of(self) then self.ended = gather_parts(self:state_dict()) or false end
end

--- All but the residuals of a hook.
function DDP:is_replicated(part)
  return part ~= "strategy" or self.ended ~= nil or not hook_of(self)
end

return DDP
