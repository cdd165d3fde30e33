--- stdlib/apps/dashboard/request_target.lua: parses and validates the request target: path and
--- query.
--
-- Paths are made of names of letters, digits, "." "-" and "_": nothing in them is ever decoded, and
-- none of them is looked up in a file system. Queries are decoded once; a wrong escape, a NUL and
-- what is not UTF-8 is refused.
local request_target = {}

local LONGEST <const> = 8192
local NAME <const> = "^[%w%-_][%w%.%-_]*$"

local function decode(text)
  local wrong = text:gsub("%%%x%x", ""):find("%", 1, true)
  if wrong then return nil end
  local plain = text:gsub("+", " "):gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end)
  return not plain:find("[%z\1-\8\11\12\14-\31\127]") and utf8.len(plain) and plain or nil
end

local function read_query(text)
  local query = {}
  for field in text:gmatch "[^&]+" do
    local name, value = field:match "^([^=]*)=?(.*)$"
    name, value = decode(name), decode(value)
    if not name or not value then return nil end
    query[name] = query[name] or {}
    table.insert(query[name], value)
  end
  return query
end

--- The parts of a request's target: {names of the path}, and the query, name -> list of values. Nil
--- and the status and a reason where it is none.
function request_target.read(text)
  if #text > LONGEST then return nil, 414, "the address is too long" end
  local path, rest = text:match "^(/[^?#]*)(.*)$"
  if not path or rest:find("#", 1, true) then return nil, 400, "no path" end
  local parts = {}
  for name in path:sub(2):gmatch "[^/]+" do
    if not name:find(NAME) or name:find("..", 1, true) then return nil, 404, "no such path" end
    parts[#parts + 1] = name
  end
  if path ~= "/" .. table.concat(parts, "/") then return nil, 404, "no such path" end
  local query = read_query(rest:sub(2))
  if not query then return nil, 400, "the query is not well formed" end
  return parts, query
end

-- The one value of a name; nil without it. Raises {status, reason}.
local function one(query, name)
  local values = query[name]
  if not values then return nil end
  if #values > 1 then error({ 400, name .. ": given more than once" }, 0) end
  return values[1]
end

--- A text of a query, of a list of choices where one is given.
function request_target.text(query, name, default, choices)
  local value = one(query, name) or default
  if not choices then return value end
  for _, choice in ipairs(choices) do
    if choice == value then return value end
  end
  error({ 400, ("%s: must be one of %s"):format(name, table.concat(choices, ", ")) }, 0)
end

--- A whole number of a query, from `least` to `most`.
function request_target.integer(query, name, default, least, most)
  local text = one(query, name)
  if not text then return default end
  local value = text:find "^%-?%d+$" and math.tointeger(tonumber(text))
  if not value or value < least or value > most then
    error({ 400, ("%s: must be an integer from %d to %d"):format(name, least, most) }, 0)
  end
  return value
end

--- A number of a query; nil without it.
function request_target.number(query, name)
  local text = one(query, name)
  if not text then return nil end
  local value = text:find "^%-?[%d.][%deE.+-]*$" and tonumber(text)
  if not value then error({ 400, name .. ": must be a number" }, 0) end
  return value + 0.0
end

return request_target
