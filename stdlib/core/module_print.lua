-- stdlib/core/module_print.lua: a module as text, one line a layer, as PyTorch prints it.

local walk = require "ltrain.core.walk"

local module_print = {}

local function label(keys, from)
  local key = keys[#keys]
  if #keys > from then -- inside plain tables: their names too
    local parts = {}
    for i = from, #keys do parts[#parts + 1] = tostring(keys[i]) end
    key = table.concat(parts, ".")
  end
  return math.type(key) and ("[%d]"):format(key) or ("(%s)"):format(key)
end

local function indent(text)
  return (text:gsub("\n", "\n  "))
end

local open = {} -- the modules whose text is being made: one of them inside itself is cut short

local function opened(module)
  open[module] = true
  return setmetatable({}, { __close = function() open[module] = nil end })
end

--- Net(
---   (head): Linear(784, 10)
--- )
function module_print.text(module)
  if open[module] then return walk.class_name(module) .. "(...)" end
  local _ <close> = opened(module)
  local name, extra, lines = walk.class_name(module), module:extra_repr(), {}
  for _, child in ipairs(walk.children(module)) do
    lines[#lines + 1] = ("  %s: %s\n"):format(label(child.keys, 1), indent(tostring(child.value)))
  end
  if #lines == 0 then return ("%s(%s)"):format(name, extra) end
  return ("%s(%s\n%s)"):format(name, extra, table.concat(lines))
end

return module_print
