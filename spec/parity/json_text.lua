-- spec/parity/json_text.lua: values as a line of JSON.

-- Python's reader takes NaN and Infinity.
local function text(v)
  if type(v) == "boolean" then return tostring(v) end
  if type(v) == "string" then return ('"%s"'):format(v:gsub('[%c"\\]', " ")) end
  if math.type(v) == "integer" then return tostring(v) end
  if type(v) == "number" then
    if v ~= v then return "NaN" end
    if v == 1 / 0 or v == -1 / 0 then return v > 0 and "Infinity" or "-Infinity" end
    local digits = ("%.17g"):format(v)
    return digits:find("[.e]") and digits or digits .. ".0" -- -0.0 keeps its sign
  end
  local parts = {}
  if #v > 0 or next(v) == nil then
    for k, x in ipairs(v) do parts[k] = text(x) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  local keys = {}
  for key in pairs(v) do keys[#keys + 1] = key end
  table.sort(keys)
  for k, key in ipairs(keys) do parts[k] = ('"%s":%s'):format(key, text(v[key])) end
  return "{" .. table.concat(parts, ",") .. "}"
end

return text
