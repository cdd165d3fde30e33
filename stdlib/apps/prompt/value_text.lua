--- stdlib/apps/prompt/value_text.lua: formats a value for the prompt: whole if it is small, else
--- its ends.
local members = require "ltrain.apps.prompt.members"
local tree = require "ltrain.core.tree"

local value_text = {}

-- Entries of a table, levels, columns, lines, bytes of a text.
local MOST <const>, DEPTH <const>, WIDTH <const>, LINES <const>, BYTES <const> = 20, 3, 80, 60, 4000

local function is_tensor(value) return getmetatable(value) == "ltrain.Tensor" end

local function tensor_text(value)
  return ("tensor [%s] %s"):format(table.concat(value.shape, ", "), value.dtype)
end

-- A text in quotes, the start of a long one; `beside`: how wide what stands in front of it is.
local function quoted(value, beside)
  local most = math.max(12, math.min(40, WIDTH - 12 - beside))
  if #value > most then value = value:sub(1, utf8.offset(value, 0, most - 2) - 1) .. "..." end
  return (("%q"):format(value):gsub("\\\n", "\\n"))
end

local render

-- A value inside a table: strings quoted, tensors by shape, tables as deep as is left.
local function short(value, level, beside)
  local kind = type(value)
  if kind == "string" then return quoted(value, beside or 0) end
  if is_tensor(value) then return tensor_text(value) end
  if kind ~= "table" then return tostring(value) end
  local meta = getmetatable(value)
  local name = type(meta) == "table" and rawget(meta, "__name")
  if name or rawget(value, "__name") then return name or tostring(value) end
  if meta ~= nil and type(meta) == "table" and rawget(meta, "__tostring") then
    return tostring(value)
  end
  return render(value, level, beside)
end

local function key_text(key)
  if type(key) == "string" and key:find("^[%a_][%w_]*$") then return key .. " = " end
  return ("[%s] = "):format(short(key, DEPTH))
end

-- Parts with commas, in lines of up to WIDTH columns behind `indent`, the first behind `beside`
-- columns; what has lines of its own begins one.
local function fill(parts, indent, beside)
  local lines, line = {}, ""
  for i, part in ipairs(parts) do
    part = part .. (i < #parts and "," or "")
    local before = #lines == 0 and beside or #indent
    local too_long = before + #line + #part + 2 > WIDTH or part:find("\n", 1, true)
    if line ~= "" and too_long then
      lines[#lines + 1] = line
      line = ""
    end
    line = line .. (line == "" and "" or " ") .. part
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n" .. indent)
end

local open = {} -- tables that are being shown: one of them inside itself is cut short

-- The keys of a table: those of tree.keys, then the others; what the script's metamethods would add
-- is not asked for.
local function keys_of(t)
  local keys, _, other = tree.keys(t)
  if other == nil then return keys end
  for key in next, t do
    if math.type(key) ~= "integer" and type(key) ~= "string" then keys[#keys + 1] = key end
  end
  return keys
end

-- The entries of a table as texts: the first of many, the very first behind `beside` columns.
local function parts_of(t, level, beside)
  local parts, n = {}, rawlen(t)
  for i = 1, math.min(n, MOST) do
    parts[i] = short(rawget(t, i), level, i == 1 and beside or level)
  end
  if n > MOST then parts[#parts + 1] = ("... %d more"):format(n - MOST) end
  local named = 0
  for _, key in ipairs(keys_of(t)) do
    if math.type(key) ~= "integer" or key < 1 or key > n then
      named = named + 1
      if named <= MOST then
        local text = key_text(key)
        parts[#parts + 1] = text .. short(rawget(t, key), level,
          (#parts == 0 and beside or level) + #text)
      end
    end
  end
  if named > MOST then parts[#parts + 1] = ("... %d more fields"):format(named - MOST) end
  return parts
end

--- {1, 2, name = "x", {...}}: `level` levels down already, behind `beside` columns.
function render(t, level, beside)
  if next(t) == nil then return "{}" end
  if open[t] or level >= DEPTH then return "{...}" end
  open[t] = true
  local _ <close> = setmetatable({}, { __close = function() open[t] = nil end })
  beside = (beside or level) + 1
  return "{" .. fill(parts_of(t, level + 1, beside), (" "):rep(level + 1), beside) .. "}"
end

-- A text of many lines, or of many bytes: its ends.
local function cut(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  if #lines > LINES then
    local half = LINES // 2
    local last = table.concat(lines, "\n", #lines - half + 2)
    text = ("%s\n ... %d more lines ...\n%s"):format(table.concat(lines, "\n", 1, half),
      #lines - 2 * half + 1, last)
  end
  if #text <= BYTES * 2 then return text end
  return ("%s\n... %d more bytes"):format(text:sub(1, (utf8.offset(text, 0, BYTES) or BYTES) - 1),
    #text - BYTES)
end

-- A text as it is, without what a terminal would obey.
local function harmless(text)
  if not utf8.len(text) then
    text = text:gsub("[\x80-\xff]", function(byte) return ("\\x%02x"):format(byte:byte()) end)
  end
  return (text:gsub("[%c]", function(byte)
    return byte ~= "\n" and byte ~= "\t" and ("\\x%02x"):format(byte:byte()) or nil
  end))
end

-- A part of the library: what it has is loaded when it is asked for.
local function namespace_text(namespace)
  local set, parts = members.fields(namespace), {}
  for _, name in ipairs((tree.keys(set))) do
    if type(name) == "string" and name:sub(1, 1) ~= "_" then parts[#parts + 1] = name end
  end
  local n = #parts
  parts[MOST + 1] = n > MOST and ("... %d more"):format(n - MOST) or nil
  return "{" .. fill(table.move(parts, 1, math.min(n, MOST + 1), 1, {}), " ", 1) .. "}"
end

-- An object without a text of its own: its class and its fields.
local function object_text(value, name)
  local fields = setmetatable({}, { __index = value, __len = function() return 0 end })
  for key, item in next, value do
    if type(key) ~= "string" or key:sub(1, 1) ~= "_" then fields[key] = item end
  end
  setmetatable(fields, nil)
  return name .. render(fields, 1, #name)
end

--- The text of a value.
function value_text.value(value)
  if type(value) == "string" then return cut(harmless(value)) end
  if type(value) ~= "table" then return cut(tostring(value)) end
  local meta = getmetatable(value)
  if meta == nil then return render(value, 0) end
  if type(meta) ~= "table" or rawget(value, "__name") then return cut(tostring(value)) end
  if rawget(meta, "__module") then
    local text = require "ltrain.apps.prompt.module_text"(value)
    if text then return cut(text) end
  end
  local name = rawget(meta, "__name")
  local is_told = rawget(meta, "__tostring")
  if name and not is_told then return cut(object_text(value, name)) end
  if is_told then return cut(tostring(value)) end
  if members.is_namespace(value) then return namespace_text(value) end
  return render(value, 0)
end

--- The texts of several values: side by side, or below each other where one has several lines.
function value_text.values(values, first)
  local texts, between = {}, "\t"
  for i = first, values.n do
    texts[#texts + 1] = value_text.value(values[i])
    if texts[#texts]:find("\n", 1, true) then between = "\n" end
  end
  return table.concat(texts, between)
end

return value_text
