--- stdlib/apps/check/tensor_origins.lua: which operation of an experiment computed a tensor.
local tensor_origins = {}

--- { [tensor] = the call that it is an output of }, for calls as of c.runtime.trace.
function tensor_origins.of(calls)
  local made = {}
  for _, call in ipairs(calls) do tensor_origins.add(made, call) end
  return made
end

--- Adds the outputs of a call.
function tensor_origins.add(made, call)
  for _, output in ipairs(call.outputs) do
    if output then made[output] = call end
  end
end

--- What made a tensor, seen through views: the call; nil for an input.
function tensor_origins.producer(made, tensor)
  local call = made[tensor]
  while call and call.view and call.inputs[1] do call = made[call.inputs[1]] end
  return call
end

--- "[2, 4]"
function tensor_origins.shape(tensor) return "[" .. table.concat(tensor.shape, ", ") .. "]" end

return tensor_origins
