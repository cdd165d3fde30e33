--- stdlib/trainer/steps/module_step.lua: calls a step of the module (training_step, ...) with a
--- batch.
local current_step = require "ltrain.core.current_step"
local hook_calls = require "ltrain.trainer.hook_calls"
local old_hooks = require "ltrain.compat.hooks"

local module_step = {}

-- A strategy may run a part of a step alone.
local function call(state, name, ...)
  local strategy, module = state.strategy, state.module
  if not strategy.run_step then return hook_calls.method(state, name, ...) end
  return hook_calls.through(state, name, strategy.run_step, strategy, module[name], module, ...)
end

--- Calls a step of the module, within what the strategy opens around it: `batch`, its number, and
--- that of the loader.
function module_step.run(state, name, batch, ...)
  current_step.batch = batch -- errors say what it has
  local strategy, step_end = state.strategy, old_hooks.step_ends[name]
  local _ <close> = strategy:forward_scope()
  if not step_end or not state.hooks[step_end.name] then step_end = nil end
  if strategy.splits_batches then
    return require "ltrain.trainer.steps.device_parts"(state, name, step_end, batch, ...)
  end
  if not step_end then return call(state, name, batch, ...) end
  state.trainer:note(step_end.note)
  local outputs = call(state, name, batch, ...)
  if outputs == nil then return nil end
  return hook_calls.method(state, step_end.name, outputs)
end

return module_step
