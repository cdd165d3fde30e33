-- spec/api/signatures.lua: the names of signatures.txt with their parameters.
local loaded = require "spec.api.loaded"

local signatures = {}

local FILE <const> = (os.getenv "LT_ROOT" or ".") .. "/spec/api/signatures.txt"

-- "name=" is optional, what is behind "*" goes by name alone; "*args" and "**kwargs" take anything.
local function parameters_of(text)
  local list, by_name = {}, false
  for word in text:gmatch "[^, ]+" do
    if word:find "^%*" then
      by_name = true
    else
      list[#list + 1] = { name = word:match "^[%w_]+", optional = word:find "=$" ~= nil,
        by_name = by_name }
    end
  end
  return list
end

--- A list of { room =, name =, parameters = list or nil } of all names below a prefix, in order.
function signatures.read(prefix)
  local list = {}
  for line in io.lines(FILE) do
    if line:sub(1, #prefix) == prefix then
      local path, arguments = line:match "^([%w_.]+)(.*)$"
      local room, name = path:match "^(.*)%.([%w_]+)$"
      local inside = arguments:match "^%((.*)%)$"
      list[#list + 1] = { room = room, name = name, parameters = inside and parameters_of(inside) }
    end
  end
  return list
end

-- The function that a script wrote for us: behind those that refuse arguments or place options.
local function innermost(fn)
  for i = 1, math.huge do
    local name, value = debug.getupvalue(fn, i)
    if not name then return fn end
    if name == "fn" and type(value) == "function" then return innermost(value) end
  end
end

--- The names of a function's own parameters, without self and a table of options.
function signatures.own(fn)
  local names = {}
  fn = innermost(loaded(fn))
  for i = 1, debug.getinfo(fn, "u").nparams do
    local name = debug.getlocal(fn, i)
    if name ~= "self" and name ~= "_" and not name:find "options$" then names[#names + 1] = name end
  end
  return names
end

return signatures
