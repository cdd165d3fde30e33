-- stdlib/core/as_instance.lua: converts what a script passes for a protocol object (CheckpointIO,
-- Precision, ...), an instance or a plain table of methods, to an instance.
--
-- The protocols that a script may implement (how checkpoints are saved, how steps compute) are
-- small, so that a table of functions is enough; missing methods are inherited from the class.

local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local function method_names(base)
  local names, others = {}, { init = true, extend = true, adopt = true }
  for key, value in next, base do
    if type(value) == "function" and not others[key] and not key:find "^__" then
      names[#names + 1] = key
    end
  end
  table.sort(names)
  return names
end

-- Raises for a function whose name is nearly that of a protocol method; other names are the
-- table's own.
local function check_names(value, base, where)
  local names = method_names(base)
  for key, member in next, value do
    local near = type(member) == "function" and base[key] == nil and errors.nearest(key, names)
    if near then
      errors.blame("%s: no method is called '%s'; did you mean '%s'?", where, key, near)
    end
  end
end

--- `value` if it is an instance of `base` or a subclass; a plain table becomes one if it has the
--- methods in `needed`. `where` begins error messages: "strategies.DDP: checkpoint_io".
return function(value, base, where, needed)
  if class.is_a(value, base) then return value end
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    errors.blame("%s: must be an object below lt.%s or a plain table of its methods: got %s", where,
      base.__name, errors.show(value))
  end
  check_names(value, base, where)
  local missing = {}
  for _, name in ipairs(needed or {}) do
    if value[name] == nil then missing[#missing + 1] = name end
  end
  if #missing > 0 then
    errors.blame("%s: a table needs the methods %s: missing: %s", where,
      table.concat(needed, ", "), table.concat(missing, ", "))
  end
  return setmetatable(value, base)
end
