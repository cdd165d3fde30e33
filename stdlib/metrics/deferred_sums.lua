--- stdlib/metrics/deferred_sums.lua: what updates on a device add to number states of metrics,
--- which is read when the states are.
--
-- A number of each batch would make the host wait for each batch. The partial results stay on the
-- device, reduced there, until compute, state_dict or a merge asks for the state.
local c = require "ltrain.c"
local reductions = require "ltrain.core.reductions"

local deferred_sums = {}

-- The reduction of a state, and whether it is a sum.
local function reduction_of(metric, name)
  for _, state in ipairs(metric:states()) do
    if state.name == name then return reductions[state.reduce], state.reduce == "sum" end
  end
end

--- Reduces a number or a tensor of one element into the number state `name`.
function deferred_sums.add(metric, name, value)
  local reduce, is_sum = reduction_of(metric, name)
  if type(value) ~= "userdata" then
    metric[name] = reduce(metric[name], value)
  elseif value.device == "cpu" then
    metric[name] = reduce(metric[name], value:item())
  else
    local late = metric._late or {}
    metric._late = late
    local before = late[name] or is_sum and c.zeros_like(value) -- all batches compute the same
    late[name] = before and reduce(before, value) or value
  end
end

--- Whether what two metrics have yet to read is the same.
function deferred_sums.equal(a, b)
  local left, right = a._late or {}, b._late or {}
  for name, value in next, left do
    if not rawequal(value, right[name]) then return false end
  end
  for name in next, right do
    if left[name] == nil then return false end
  end
  return true
end

--- `to` has yet to read what `from` has.
function deferred_sums.copy(to, from)
  local late = {}
  for name, value in next, from._late or {} do late[name] = value end
  to._late = next(late) and late
end

--- The number states of a metric become what they are; waits for the device.
function deferred_sums.read(metric)
  local late = metric._late
  if not late then return end
  metric._late = nil
  for name, value in next, late do
    local reduce = reduction_of(metric, name)
    metric[name] = reduce(metric[name], value:item())
  end
end

return deferred_sums
