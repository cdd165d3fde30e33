--- stdlib/trainer/steps/nonfinite/finite_values.lua: whether numbers and tensors are finite.
local c = require "ltrain.c"
local is_float = require "ltrain.core.is_float"
local parts = require "ltrain.core.parts"

local finite = {}

local INF <const> = math.huge

--- Whether a number is neither NaN nor infinite.
function finite.number(value)
  return value - value == 0
end

--- Whether all elements of a list of floating tensors on one device that need no gradient are: one
--- pass.
function finite.all(tensors)
  return #tensors == 0 or finite.number(c.grads_norm(tensors, INF):item())
end

-- The same of tensors on any devices. Of a module that is divided the parts that other ranks have
-- sent are on the host.
local function all_anywhere(tensors)
  local lists = {}
  for _, tensor in ipairs(tensors) do
    local list = lists[tensor.device] or {}
    lists[tensor.device] = list
    list[#list + 1] = tensor
  end
  for _, list in next, lists do
    if not finite.all(list) then return false end
  end
  return true
end

--- Whether all elements of a tensor are. Integers always are.
function finite.of(tensor)
  return not is_float(tensor.dtype) or finite.all { tensor:detach() }
end

--- The names of those of a module's parameters whose elements are not all finite. `values`: what to
--- look at by name, tensors or parts of them (core/parts.lua), without what other ranks have; nil:
--- the parameters. `is_divided`: they may be on several devices.
function finite.nonfinite_parameters(module, values, is_divided)
  local list, known, names = {}, {}, {}
  for name, parameter in module:named_parameters() do
    local value = parameter
    if values then value = values[name] end
    if value and is_float(parameter.dtype) then
      list[#list + 1] = parts.is(value) and value.tensor or value:detach()
      known[#list] = name
    end
  end
  if (is_divided and all_anywhere or finite.all)(list) then return names end
  for i, value in ipairs(list) do
    if not finite.of(value) then names[#names + 1] = known[i] end
  end
  return names
end

--- The names of those that are not finite of what this rank of a run has of the parameters.
function finite.own_nonfinite_parameters(state)
  local module, strategy = state.module, state.strategy
  local is_whole = not state.ranks.many or strategy:is_replicated "parameter"
  return finite.nonfinite_parameters(module, not is_whole and strategy:module_parts(module) or nil)
end

return finite
