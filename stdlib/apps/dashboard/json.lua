--- stdlib/apps/dashboard/json.lua: answers as JSON.
--
-- What a run's files hold may be anything: bytes that are not UTF-8 become U+FFFD, what JSON has no
-- form for is left out, and a list without elements stays a list.
local c = require "ltrain.c"
local time_slices = require "ltrain.apps.dashboard.time_slices"

local json = {}

local List <const> = {}
local PLAIN <const> = { plain = true }
local DEPTH <const> = 100
local REPLACEMENT <const> = "\u{FFFD}"

--- What stands for null in a list.
json.null = setmetatable({}, { __name = "null" })

--- Has a table written as a list, also without an element.
function json.list(values)
  return setmetatable(values, List)
end

-- Text with each byte that is not of a character of UTF-8 replaced.
local function clean(text)
  if utf8.len(text) then return text end
  local parts, at = {}, 1
  while at <= #text do
    local length, wrong = utf8.len(text, at)
    if length then wrong = #text + 1 end
    parts[#parts + 1] = text:sub(at, wrong - 1)
    if not length then parts[#parts + 1] = REPLACEMENT end
    at = wrong + 1
  end
  return table.concat(parts)
end

--- A text as JSON has it.
function json.text(text)
  if not text:find '[%c"\\\x80-\xFF]' then return '"' .. text .. '"' end
  return c.io.json_encode(clean(text), PLAIN)
end

--- A number with the digits that loggers give it; one that is not finite is a text.
function json.number(value)
  if math.type(value) == "integer" then return tostring(value) end
  return c.io.json_encode(value, PLAIN)
end

local write

-- A list of numbers at once: charts are made of them.
local function encode_numbers(list)
  for i = 1, #list do
    if not math.type(list[i]) then return nil end
  end
  setmetatable(list, nil)
  local text = #list > 0 and c.io.json_encode(list, PLAIN)
  setmetatable(list, List)
  return text
end

local function write_list(out, list, depth)
  local numbers = math.type(list[1]) and encode_numbers(list)
  if numbers then
    out[#out + 1] = numbers
    return
  end
  out[#out + 1] = "["
  for i, value in ipairs(list) do
    time_slices.pause()
    if i > 1 then out[#out + 1] = "," end
    write(out, value, depth)
  end
  out[#out + 1] = "]"
end

local function write_object(out, object, depth)
  local names = {}
  for name in next, object do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  out[#out + 1] = "{"
  for i, name in ipairs(names) do
    time_slices.pause()
    local key = out.keys[name] or json.text(name) .. ":" -- objects of a list have the same ones
    out.keys[name] = key
    out[#out + 1] = i > 1 and "," .. key or key
    write(out, object[name], depth)
  end
  out[#out + 1] = "}"
end

function write(out, value, depth)
  local kind = type(value)
  if kind == "number" then
    out[#out + 1] = json.number(value)
  elseif kind == "string" then
    out[#out + 1] = json.text(value)
  elseif kind == "boolean" then
    out[#out + 1] = tostring(value)
  elseif kind ~= "table" or value == json.null or depth > DEPTH then
    out[#out + 1] = "null"
  elseif getmetatable(value) == List or value[1] ~= nil then
    write_list(out, value, depth + 1)
  else
    write_object(out, value, depth + 1)
  end
end

--- A value as JSON.
function json.encode(value)
  local out = { keys = {} }
  write(out, value, 0)
  return table.concat(out)
end

return json
