-- spec/parity/draw.lua: writes random cases and what ltrain makes of them, a line of JSON each.
--
--   ltrain spec/parity/draw.lua SEED CASES > cases.jsonl
local cases = require "spec.parity.cases"

local seed, n = math.tointeger(arg[1]), math.tointeger(arg[2])

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

math.randomseed(seed)
local have, lack = cases.names()
io.write(text{lacking = lack}, "\n")
for k = 1, n do
  local case = cases.draw(have[(k - 1) % #have + 1])
  local ok, answer = pcall(cases.run, case)
  case.answer = ok and answer or {error = tostring(answer)}
  io.write(text(case), "\n")
end
