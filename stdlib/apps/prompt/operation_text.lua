--- stdlib/apps/prompt/operation_text.lua: describes a row of lt.ops(): for `:help`, and for
--- tools/docs/ops_page.lua.
local c = require "ltrain.c"

local operation_text = {}

local TYPES <const> = {
  int = "integer", number = "number", flag = "boolean", dim = "dim", dims = "dim or list of dims",
  pos = "position", sizes = "shape", pair = "integer or {h, w}",
  each = "integer, or one for each dim", padding = "the same, 'valid' or 'same'", scalar = "number",
  dtype = "dtype", device = "device",
}

local DTYPES <const> = {
  float = "float; of integers f32", any = "that of x", promote = "promoted",
  first = "that of x", int = "promoted", own = "",
}

--- The dtype of the result in words.
function operation_text.dtype(op)
  if op.kind == "compare" or op.kind == "test" then return "bool" end
  if op.kind == "binary" and op.dtype == "any" then return "promoted" end
  return DTYPES[op.dtype]
end

--- The default of an argument: they stand in lt.ops() as C writes them.
function operation_text.default(argument)
  local text = argument.default
  if argument.required then return "required" end
  if text:find("NONE") or text:find("LT_NO") then return "not given" end
  if argument.type == "choice" then return ("'%s'"):format(text:match("[a-z0-9]+$")) end
  if text:find("INFINITY") then return text:find("^-") and "-inf" or "inf" end
  local pair = text:match("^LT_%u+_OF%((.-)%)$")
  if pair == "LT_AS_KERNEL" then return "that of the window" end
  local number = tonumber(text)
  if (argument.type == "dim" or argument.type == "pos") and number and number >= 0 then
    return tostring(math.tointeger(number) + 1) -- C counts them from 0
  end
  return pair or text
end

--- The type of an argument in words.
function operation_text.type(argument)
  if argument.type ~= "choice" then return TYPES[argument.type] end
  return "'" .. argument.choices:gsub("|", "' or '") .. "'"
end

--- Arguments that a script gives: those of binary kinds stand for the operands.
function operation_text.arguments(op)
  return (op.kind == "binary" or op.kind == "compare") and {} or op.args
end

--- "lt.linear(x, weight [, bias])".
function operation_text.call(op)
  local parts, of = {}, {}
  local least = op.list and 1 or op.kind == "binary" and 2 or op.kind == "compare" and 2
    or op.min_in
  for i, name in ipairs(op.inputs) do of[name] = i <= least and name or "[" .. name .. "]" end
  local optional = false
  for _, argument in ipairs(operation_text.arguments(op)) do
    if argument.required then of[argument.name] = argument.name else optional = true end
  end
  for _, name in ipairs(op.places) do parts[#parts + 1] = of[name] end
  if optional then parts[#parts + 1] = "{...}" end
  local name = type(c[op.name]) == "function" and "lt." .. op.name or "x:" .. op.name
  if name:sub(1, 2) == "x:" then table.remove(parts, 1) end
  return ("%s(%s)"):format(name, table.concat(parts, ", "))
end

--- What else is to be said of it, or nil.
function operation_text.notes(op)
  local list = {}
  if not op.method and op.max_in ~= 0 then list[#list + 1] = "Takes a list of tensors." end
  if op.view then list[#list + 1] = "A view: shares memory with x." end
  if op.mutates then list[#list + 1] = "Changes its arguments in place." end
  if op.n_shown > 1 then list[#list + 1] = ("Up to %d results."):format(op.n_shown) end
  return #list > 0 and table.concat(list, " ") or nil
end

return operation_text
