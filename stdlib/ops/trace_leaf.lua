-- stdlib/ops/trace_leaf.lua: functions that a trace records as one call, not as the operations that
-- they are composed of (leaves, in torch.fx's term).

local trace_leaf = {}

local calls -- of the trace that reads them so; nil: there is none

local closing <const> = { __close = function(scope) calls = scope.outer end }

--- Until the scope is closed, `list`, of c.runtime.trace, gets these functions as one call each.
function trace_leaf.open(list)
  local scope <const> = setmetatable({ outer = calls }, closing)
  calls = list
  return scope
end

--- fn(), a new tensor, which is the call `op` of x: {op, args, inputs, outputs, line}.
function trace_leaf.call(op, args, x, fn)
  local list <const> = calls
  local n <const> = list and #list
  local y <const> = fn()
  if list then
    local line <const> = list[#list].line
    for k = #list, n + 1, -1 do list[k] = nil end
    list[n + 1] = { op = op, args = args, inputs = { x }, outputs = { y }, line = line }
  end
  return y
end

return trace_leaf
