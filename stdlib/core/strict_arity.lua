-- stdlib/core/strict_arity.lua: makes functions that raise on surplus arguments, and methods that
-- raise without an object.
--
-- Lua drops surplus arguments, so that an option in the wrong place would be ignored. Public
-- functions are therefore wrapped with one more parameter, which must be nil: methods when a class
-- defines them (class.lua), functions by the table that exports them. A method without an object
-- was called with "." instead of ":".

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local strict_arity = {}

-- `name` is a class's where an object is made.
local function refuse(name, value, is_forward)
  local is_input = type(value) == "userdata" and name:find "^%u%w*$" and not is_forward
  errors.blame("%s: one argument too many: %s%s", name, errors.show(value),
    is_input and (": make the object first, then call it: %s()(...)"):format(name) or "")
end

local function is_module(value)
  return type(value) == "table" and type(value.forward) == "function"
end

-- Raises for one argument too many, and where `owner` says that a method of a class has no object.
-- `first`: the method's object, `second`: what follows.
local function check(name, value, owner, first, second)
  if value ~= nil and name == "forward" and is_module(first) and is_module(second) then
    errors.blame("%s: its input is %s: a layer is called with a dot, self.layer(x), not "
      .. "self:layer(x)", tostring(owner or name), errors.show(second))
  end
  if value ~= nil then refuse(name == "forward" and owner or name, value, name == "forward") end
  if owner then
    errors.blame("%s: call it with a colon, %s:%s(...): got nil instead of the %s", name,
      owner:lower(), name, owner)
  end
end

-- By the number of parameters. Tail calls: errors name the function's own frame.
local MAKERS <const> = {
  [0] = function(fn, name)
    return function(x)
      if x ~= nil then refuse(name, x) end
      return fn()
    end
  end,
  function(fn, name, owner)
    return function(a, x)
      if x ~= nil or a == nil then check(name, x, owner) end
      return fn(a)
    end
  end,
  function(fn, name, owner)
    return function(a, b, x)
      if x ~= nil or a == nil then check(name, x, owner, a, b) end
      return fn(a, b)
    end
  end,
  function(fn, name, owner)
    return function(a, b, d, x)
      if x ~= nil or a == nil then check(name, x, owner, a, b) end
      return fn(a, b, d)
    end
  end,
  function(fn, name, owner)
    return function(a, b, d, e, x)
      if x ~= nil or a == nil then check(name, x, owner, a, b) end
      return fn(a, b, d, e)
    end
  end,
  function(fn, name, owner)
    return function(a, b, d, e, f, x)
      if x ~= nil or a == nil then check(name, x, owner, a, b) end
      return fn(a, b, d, e, f)
    end
  end,
}

--- The function, refusing what comes after its parameters; any other value, a function that takes
--- all that comes and one that is so already as it is. `name` begins the text of the error; `owner`
--- (nil: none) is the name of the class whose method it may be.
function strict_arity.fn(fn, name, owner)
  if type(fn) ~= "function" then return fn end
  local count, is_method = c.runtime.parameters(fn)
  local make = MAKERS[count or -1]
  return make and make(fn, name, is_method and owner) or fn
end

--- The table with all its functions so; `namespace` (nil: none), "nn.init", is their prefix.
function strict_arity.all(functions, namespace)
  for name, fn in next, functions do
    functions[name] = strict_arity.fn(fn, namespace and namespace .. "." .. name or name)
  end
  return functions
end

return strict_arity
