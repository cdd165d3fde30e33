-- spec/ops/by_name.lua: the arguments of a call whose optional tensors go by name, whatever the
-- order in which an operation takes them by place.
local lt = require "ltrain"

local rows = {}
for _, op in ipairs(lt.ops()) do rows[op.name] = op end

--- The inputs of an operation, in the order of kinds.def, and a table of options as a list.
return function(name, inputs, options)
  local op, named = rows[name], {}
  local first = op and op.max_in > 0 and math.min(op.min_in, #inputs) or #inputs
  local more <const> = op and #inputs > op.max_in -- x:max(y) is another operation
  if more or op and (op.kind == "binary" or op.kind == "compare") then first = #inputs end
  for key, value in pairs(options or {}) do named[key] = value end
  for k = first + 1, op and op.max_in or 0 do
    if inputs[k] ~= nil then named[op.inputs[k]] = inputs[k] end
  end
  local list = { table.unpack(inputs, 1, first) }
  if next(named) then list[first + 1] = named end
  return list
end
