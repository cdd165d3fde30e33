--- stdlib/trainer/saving/module_modes.lua: saves and restores which parameters are frozen
--- (requires_grad) and which modules are in evaluation mode.
--
-- A fit may freeze and unfreeze as it goes. What is kept is what differs from a new module: names
-- of parameters that do not require a gradient, names of modules that are not training.
local walk = require "ltrain.core.walk"

local module_modes = {}

-- During validation all modules are in evaluation mode: what counts is the mode they go back to.
local function training_of(state)
  local before = state.loop.modes_before or {}
  return function(module)
    if before[module] ~= nil then return before[module] end
    return module.training
  end
end

--- { frozen = { names }, evaluating = { names } }
function module_modes.collect(state)
  local kept, is_training = { frozen = {}, evaluating = {} }, training_of(state)
  local tensors, _, modules = walk.tensors(state.module)
  for _, item in ipairs(tensors) do
    if not item.buffer and not item.value.requires_grad then
      kept.frozen[#kept.frozen + 1] = item.name
    end
  end
  for _, entry in ipairs(modules) do
    if not is_training(entry.module) then
      kept.evaluating[#kept.evaluating + 1] = entry.name
    end
  end
  return kept
end

local function as_set(names)
  local set = {}
  for _, name in ipairs(names) do set[name] = true end
  return set
end

--- Takes that back; nil (a file that has none): leaves all as it is.
function module_modes.restore(state, kept)
  if not kept then return end
  local frozen, evaluating = as_set(kept.frozen), as_set(kept.evaluating)
  for name, parameter in state.module:named_parameters() do
    parameter.requires_grad = not frozen[name]
  end
  for _, entry in ipairs(walk.modules(state.module)) do
    local training = not evaluating[entry.name]
    if entry.module.training ~= training then rawset(entry.module, "training", training) end
  end
end

return module_modes
