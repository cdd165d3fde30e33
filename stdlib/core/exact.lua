-- stdlib/core/exact.lua: functions that take what they name, and no more.
--
-- Lua drops arguments that a function does not name, so that an option in the wrong place would be
-- ignored. What scripts may call is given out with one more parameter, which must be nil. Classes
-- do so for their methods as they are defined (class.lua), rooms for their functions.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local exact = {}

local function refuse(name, value)
  errors.blame("%s: one argument too many: %s", name, errors.show(value))
end

-- By the number of parameters. Tail calls: errors name the function's own frame.
local MAKERS <const> = {
  [0] = function(fn, name)
    return function(x)
      if x ~= nil then refuse(name, x) end
      return fn()
    end
  end,
  function(fn, name)
    return function(a, x)
      if x ~= nil then refuse(name, x) end
      return fn(a)
    end
  end,
  function(fn, name)
    return function(a, b, x)
      if x ~= nil then refuse(name, x) end
      return fn(a, b)
    end
  end,
  function(fn, name)
    return function(a, b, d, x)
      if x ~= nil then refuse(name, x) end
      return fn(a, b, d)
    end
  end,
  function(fn, name)
    return function(a, b, d, e, x)
      if x ~= nil then refuse(name, x) end
      return fn(a, b, d, e)
    end
  end,
  function(fn, name)
    return function(a, b, d, e, f, x)
      if x ~= nil then refuse(name, x) end
      return fn(a, b, d, e, f)
    end
  end,
}

--- The function, refusing what comes after its parameters; any other value, a function that takes
--- all that comes and one that is so already as it is. `name` begins the text of the error.
function exact.fn(fn, name)
  if type(fn) ~= "function" then return fn end
  local make = MAKERS[c.runtime.parameters(fn) or -1]
  return make and make(fn, name) or fn
end

--- The table with all its functions so; `room` (nil: none) stands before their names: "nn.init".
function exact.all(functions, room)
  for name, fn in next, functions do
    functions[name] = exact.fn(fn, room and room .. "." .. name or name)
  end
  return functions
end

return exact
