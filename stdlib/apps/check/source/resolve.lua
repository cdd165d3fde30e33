--- stdlib/apps/check/source/resolve.lua: resolves an expression of a script to a name of the
--- library (lt.nn.Linear).

local function required(node)
  if node.kind ~= "call" or node.method or #node.args ~= 1 then return nil end
  local fn, arg = node.fn, node.args[1]
  if fn.kind ~= "name" or fn.name ~= "require" or fn.var or arg.kind ~= "string" then return nil end
  return arg.value == "ltrain" and require "ltrain" or nil
end

--- The value, and its name ("lt.nn"), of `require "ltrain"`, fields of it, and local variables that
--- hold them and never change; nil for all else.
local function resolve(node)
  if node.kind == "name" then
    local var = node.var
    if not var or var.assigned or not var.value or not var.value.kind then return nil end
    return resolve(var.value)
  elseif node.kind == "index" then
    local object, name = resolve(node.object)
    if type(object) ~= "table" or node.key.kind ~= "string" then return nil end
    local ok, value = pcall(function() return object[node.key.value] end)
    if not ok or value == nil then return nil end
    return value, name .. "." .. node.key.value
  end
  local value = required(node)
  return value, value and "lt"
end

return resolve
