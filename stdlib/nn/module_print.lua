-- stdlib/nn/module_print.lua: a module as text, one line a layer, as PyTorch prints it.

local walk = require "ltrain.core.walk"

local module_print = {}

local function label(keys)
  local key = keys[#keys]
  if #keys > 1 then -- inside plain tables: their names too
    local parts = {}
    for i, part in ipairs(keys) do parts[i] = tostring(part) end
    key = table.concat(parts, ".")
  end
  return math.type(key) and ("[%d]"):format(key) or ("(%s)"):format(key)
end

local open = {} -- the modules whose text is being made: one of them inside itself is cut short

local function opened(module)
  open[module] = true
  return setmetatable({}, { __close = function() open[module] = nil end })
end

local add

-- Adds the text of a module inside another: not by tostring, which goes through C and is not for
-- hundreds of modules inside each other, unless its class has one of its own.
local function add_child(parts, module, indent)
  if getmetatable(module).__tostring == module_print.text then return add(parts, module, indent) end
  parts[#parts + 1] = tostring(module):gsub("\n", "\n" .. indent)
end

-- Adds the text of a module whose lines but the first begin with `indent`.
function add(parts, module, indent)
  parts[#parts + 1] = walk.class_name(module)
  if open[module] then
    parts[#parts + 1] = "(...)"
    return
  end
  local _ <close> = opened(module)
  parts[#parts + 1] = "(" .. module:extra_repr()
  local children, inner = walk.children(module), indent .. "  "
  for _, child in ipairs(children) do
    parts[#parts + 1] = ("\n%s%s: "):format(inner, label(walk.way(child)))
    add_child(parts, child.value, inner)
  end
  parts[#parts + 1] = #children > 0 and "\n" .. indent .. ")" or ")"
end

--- Net(
---   (head): Linear(784, 10)
--- )
function module_print.text(module)
  local parts = {}
  add(parts, module, "")
  return table.concat(parts)
end

return module_print
