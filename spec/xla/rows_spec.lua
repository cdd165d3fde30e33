-- spec/xla/rows_spec.lua: each elementwise row gives on an XLA device what it gives on the CPU, and
-- so does its derivative.
-- tags: slow, sampled, unsanitized
local lt = require "ltrain"
local plugin = require "spec.xla.plugin"
local sample = require "spec.sample"

local KINDS <const> = {
  unary = 1, unary_numbers = 1, clamp = 1, test = 1, binary = 2, compare = 2,
}
local TOLERANCE <const> = { f32 = 2e-5, bf16 = 3e-2 }
local NUMBERS <const> = { threshold = { 0.3, 0.7 }, clamp = { -1, 1 } }

-- Values where the row's function is defined.
local function values(op, dtype, seed)
  lt.seed(seed)
  local x = lt.rand(3, 7, { dtype = "f64" })
  local lo, hi = op.lo or -2, op.hi or 2
  if not TOLERANCE[dtype] then return (x * 7 - 3):floor():to(dtype) end
  return (x * (hi - lo) + lo):to(dtype)
end

-- The result of a row and the gradients of its inputs.
local function run(op, dtype, device)
  local inputs = {}
  for k = 1, KINDS[op.kind] do
    inputs[k] = values(op, dtype, k):to(device)
    if TOLERANCE[dtype] then inputs[k]:requires_grad_(true) end
  end
  local arguments = table.move(inputs, 1, #inputs, 1, {})
  for _, number in ipairs(NUMBERS[op.name] or {}) do arguments[#arguments + 1] = number end
  local y = lt[op.name](table.unpack(arguments))
  local out = { y:detach() }
  if y.requires_grad then
    (y * lt.arange(1, 22):to(y.dtype):to(device):reshape(3, 7)):sum():backward()
    for _, x in ipairs(inputs) do out[#out + 1] = x.grad end
  end
  return out
end

local function list(t) return t:to("cpu"):to("f64"):reshape(-1):tolist() end

local function compare(name, want, got)
  local tolerance = TOLERANCE[tostring(want.dtype)] or 0
  local a, b = list(want), list(got)
  for i = 1, #a do
    local same = a[i] == b[i] or (a[i] ~= a[i] and b[i] ~= b[i])
      or math.abs(a[i] - b[i]) <= tolerance * (1 + math.abs(a[i]))
    assert.is_true(same, ("%s: element %d is %.9g, the CPU's %.9g"):format(name, i, b[i], a[i]))
  end
end

local rows <const> = {}
for _, op in pairs(lt.ops()) do
  if KINDS[op.kind] and not op.hidden then rows[#rows + 1] = op end
end
table.sort(rows, function(a, b) return a.name < b.name end)
assert(#rows > 90)

-- The rows are recorded before a value is read: one program.
local function same(dtype)
  if plugin.missing then return pending(plugin.missing) end
  local results = {}
  for _, op in ipairs(sample(rows, 5, function(op) return op.kind end)) do
    local takes, want = pcall(run, op, dtype, "cpu")
    if takes then results[#results + 1] = { op.name, want, run(op, dtype, "xla") } end
  end
  assert.is_true(#results > 0)
  for _, r in ipairs(results) do
    for k, want in ipairs(r[2]) do compare(r[1] .. " of " .. dtype, want, r[3][k]) end
  end
end

describe("rows on xla have the CPU's values and gradients", function()
  for _, dtype in ipairs { "f32", "bf16", "i64" } do
    it("in " .. dtype, function() same(dtype) end)
  end
end)
