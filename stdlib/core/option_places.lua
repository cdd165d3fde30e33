-- stdlib/core/option_places.lua: methods whose options may be given by place too.
--
-- A method has parameters for what is required, and one for a table of options. A class says in its
-- field `__options` which options may stand in the place of that table, in the order of PyTorch and
-- Lightning: { load_state_dict = "strict" } lets net:load_state_dict(state, false) be
-- net:load_state_dict(state, {strict = false}).

local errors = require "ltrain.core.errors"

-- The table for what follows a method's own arguments: a last table adds to it.
local function gather(names, who, ...)
  local options, n = {}, select("#", ...)
  local last = (select(n, ...))
  if type(last) == "table" and getmetatable(last) == nil and type(next(last)) == "string" then
    for name, value in next, last do options[name] = value end
    n = n - 1
  end
  for k = 1, n do
    local value, name = (select(k, ...)), names[k]
    if not name and value ~= nil then
      errors.blame("%s: one argument too many: %s", who, errors.show(value))
    elseif name and value ~= nil and options[name] ~= nil then
      errors.blame("%s: %s is given by place and by name", who, name)
    elseif name then
      options[name] = value
    end
  end
  return options
end

-- Passes `own` arguments on, and one table for all others.
local function pass(fn, names, who, own, ...)
  local arguments = { ... }
  arguments[own + 1] = gather(names, who, select(own + 1, ...))
  return fn(table.unpack(arguments, 1, own + 1))
end

--- The method `fn`, called `who`, of `own` arguments (self is one) before the table of options;
--- `text`: the names of options that have a place.
return function(fn, who, own, text)
  local names = {}
  for name in text:gmatch "%S+" do names[#names + 1] = name end
  return function(...)
    local n = select("#", ...)
    if n <= own then return fn(...) end
    local first = select(own + 1, ...)
    if n == own + 1 and (first == nil or type(first) == "table") then return fn(...) end
    return pass(fn, names, who, own, ...)
  end
end
