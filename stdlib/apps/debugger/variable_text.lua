--- stdlib/apps/debugger/variable_text.lua: formats variables for the debugger: tensors by their
--- shapes.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local variable_text = {}

local WIDTH <const> = 96
local LOOKED_AT <const> = 4000000 -- elements of a tensor in which NaN is looked for

-- ", 3 nan, 1 inf" of a tensor's elements, "" where all are finite or it is too large to look.
local function not_finite(x)
  if not x.dtype:find "^[fb]%a*%d" or x:numel() > LOOKED_AT or x:numel() == 0 then return "" end
  local parts = {}
  for _, name in ipairs { "isnan", "isinf" } do
    local n = x[name](x):sum():item()
    if n > 0 then parts[#parts + 1] = (", %d %s"):format(n, name:sub(3)) end
  end
  return table.concat(parts)
end

local function tensor_text(x)
  local shape = table.concat(x.shape, ", ")
  if x:numel() == 1 and #x.shape == 0 then return ("tensor %s %s"):format(x:item(), x.dtype) end
  local _ <close> = c.no_grad()
  return ("tensor [%s] %s%s%s"):format(shape, x.dtype, x.device ~= "cpu" and " " .. x.device or "",
    not_finite(x))
end

local function table_text(value)
  local meta = getmetatable(value)
  local name = type(meta) == "table" and rawget(meta, "__name")
  if class.is_class(value) then return "class " .. tostring(rawget(value, "__name")) end
  if name then return tostring(name) end
  local n = #value
  if n > 0 and c.is_tensor(value[1]) and n <= 4 and next(value, n) == nil then
    local parts = {}
    for i, one in ipairs(value) do parts[i] = variable_text.brief(one) end
    return "{" .. table.concat(parts, ", ") .. "}"
  end
  return next(value) == nil and "{}" or n > 0 and ("{%d entries}"):format(n) or "{...}"
end

-- A value in a few words.
function variable_text.brief(value)
  local kind = type(value)
  if c.is_tensor(value) then
    local ok, text = pcall(tensor_text, value)
    return ok and text or "tensor"
  elseif kind == "table" then
    local ok, text = pcall(table_text, value)
    return ok and text or "table"
  elseif kind == "function" then
    return "function"
  elseif kind == "string" or kind == "number" or kind == "boolean" or kind == "nil" then
    return errors.show(value)
  end
  return kind
end

--- "  x = tensor [32, 784] f32, n = 3" in as many lines as it takes; "" without variables.
function variable_text.variables(list)
  local lines, line = {}, nil
  for _, one in ipairs(list) do
    local text = ("%s = %s"):format(one.name, variable_text.brief(one.value))
    if line and #line + #text + 2 <= WIDTH then
      line = line .. ", " .. text
    else
      lines[#lines + 1] = line
      line = "  " .. text
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

return variable_text
