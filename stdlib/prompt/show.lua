--- stdlib/prompt/show.lua: how the prompt shows a value.
local tree = require "ltrain.core.tree"

local show = {}

local MOST <const>, WIDTH <const> = 20, 80

-- A value inside a table: strings quoted, tables by name only, tensors by shape.
local function short(value)
  local kind = type(value)
  if kind == "string" then
    if #value > 40 then value = value:sub(1, 37) .. "..." end
    return (("%q"):format(value):gsub("\\\n", "\\n"))
  elseif kind == "userdata" and getmetatable(value) == "ltrain.Tensor" then
    return ("tensor [%s] %s"):format(table.concat(value.shape, ", "), value.dtype)
  elseif kind == "table" then
    local meta = getmetatable(value)
    local name = type(meta) == "table" and rawget(meta, "__name")
    if name then return name end
    return next(value) == nil and "{}" or "{...}"
  end
  return tostring(value)
end

local function key_text(key)
  if type(key) == "string" and key:find("^[%a_][%w_]*$") then return key .. " = " end
  return ("[%s] = "):format(short(key))
end

-- Parts with commas, in lines of up to WIDTH characters.
local function fill(parts)
  local lines, line = {}, ""
  for i, part in ipairs(parts) do
    part = part .. (i < #parts and "," or "")
    if line ~= "" and #line + #part + 2 > WIDTH then
      lines[#lines + 1] = line
      line = ""
    end
    line = line .. (line == "" and "" or " ") .. part
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n ")
end

-- {1, 2, name = "x", ...}: one level, the first of many entries.
local function table_text(t)
  local parts, n = {}, #t
  for i = 1, math.min(n, MOST) do parts[i] = short(t[i]) end
  if n > MOST then parts[#parts + 1] = ("... %d more"):format(n - MOST) end
  local keys, _, other = tree.keys(t)
  local named = 0
  for _, key in ipairs(keys) do
    if math.type(key) == nil or key < 1 or key > n then
      named = named + 1
      if named <= MOST then parts[#parts + 1] = key_text(key) .. short(t[key]) end
    end
  end
  if named > MOST then parts[#parts + 1] = ("... %d more fields"):format(named - MOST) end
  if other ~= nil then parts[#parts + 1] = ("[%s] = ..."):format(tostring(other)) end
  return "{" .. fill(parts) .. "}"
end

--- The text of a value: as print has it; plain tables one level deep.
function show.value(value)
  if type(value) == "table" and getmetatable(value) == nil then return table_text(value) end
  return tostring(value)
end

return show
