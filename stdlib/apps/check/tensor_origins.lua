--- stdlib/apps/check/makers.lua: which operation of an experiment has made a tensor.
local makers = {}

--- { [tensor] = the call that it is an output of }, for calls as of c.runtime.trace.
function makers.of(calls)
  local made = {}
  for _, call in ipairs(calls) do makers.add(made, call) end
  return made
end

--- Adds the outputs of a call.
function makers.add(made, call)
  for _, output in ipairs(call.outputs) do
    if output then made[output] = call end
  end
end

--- What made a tensor, seen through views: the call; nil for an input.
function makers.producer(made, tensor)
  local call = made[tensor]
  while call and call.view and call.inputs[1] do call = made[call.inputs[1]] end
  return call
end

--- "[2, 4]"
function makers.shape(tensor) return "[" .. table.concat(tensor.shape, ", ") .. "]" end

return makers
