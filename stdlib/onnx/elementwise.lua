-- stdlib/onnx/elementwise.lua: ONNX nodes for the rows of unary.def and binary.def.

local c = require "ltrain.c"

local rules = {}

-- The dtype that a row is computed in: the result's.
local function dtype_of(call) return call.outputs[1].dtype end

-- Of several tensors: what they are promoted to.
local function common(call)
  local dtype
  for _, x in ipairs(call.inputs) do
    dtype = dtype and (c.zeros(0, { dtype = dtype }) + c.zeros(0, { dtype = x.dtype })).dtype
      or x.dtype
  end
  return dtype
end

-- Functions of one value that ONNX has.
local DIRECT <const> = {
  neg = "Neg", abs = "Abs", sign = "Sign", exp = "Exp", log = "Log", sqrt = "Sqrt",
  reciprocal = "Reciprocal", sin = "Sin", cos = "Cos", tan = "Tan", asin = "Asin", acos = "Acos",
  atan = "Atan", sinh = "Sinh", cosh = "Cosh", tanh = "Tanh", sigmoid = "Sigmoid", erf = "Erf",
  floor = "Floor", ceil = "Ceil", round = "Round", relu = "Relu",
}
for op, node in next, DIRECT do
  rules[op] = function(g, call) return g:add(node, { g:input(call, 1, dtype_of(call)) }) end
end

-- Functions that are made of others: fn(add, x, k): `add(node, ...)` adds a node, `k(number)` is a
-- constant of the value's dtype.
local function composite(op, fn)
  rules[op] = function(g, call)
    local dtype <const> = dtype_of(call)
    local function add(node, ...) return g:add(node, { ... }) end
    local function k(number) return g:constant(number, dtype) end
    return fn(add, g:input(call, 1, dtype), k)
  end
end

composite("square", function(add, x) return add("Mul", x, x) end)
composite("expm1", function(add, x, k) return add("Sub", add("Exp", x), k(1)) end)
composite("log1p", function(add, x, k) return add("Log", add("Add", x, k(1))) end)
composite("log2", function(add, x, k) return add("Div", add("Log", x), k(math.log(2))) end)
composite("log10", function(add, x, k) return add("Div", add("Log", x), k(math.log(10))) end)
composite("rsqrt", function(add, x) return add("Reciprocal", add("Sqrt", x)) end)
composite("trunc", function(add, x)
  return add("Mul", add("Sign", x), add("Floor", add("Abs", x)))
end)
composite("silu", function(add, x) return add("Mul", x, add("Sigmoid", x)) end)
composite("gelu", function(add, x, k)
  local erf <const> = add("Erf", add("Mul", x, k(math.sqrt(0.5))))
  return add("Mul", add("Mul", x, k(0.5)), add("Add", erf, k(1)))
end)
composite("gelu_tanh", function(add, x, k)
  local cube <const> = add("Mul", x, add("Mul", x, x))
  local inner <const> = add("Add", x, add("Mul", cube, k(0.044715)))
  local tanh <const> = add("Tanh", add("Mul", inner, k(math.sqrt(2 / math.pi))))
  return add("Mul", add("Mul", x, k(0.5)), add("Add", tanh, k(1)))
end)

function rules.clamp(g, call)
  local dtype <const> = dtype_of(call)
  local function limit(name)
    if call.runs[1].args[name] == nil then return "" end
    return g:number(call, dtype, function(run) return run.args[name] end)
  end
  return g:add("Clip", { g:input(call, 1, dtype), limit "min", limit "max" })
end

-- Tests.
function rules.isnan(g, call) return g:add("IsNaN", { g:input(call, 1) }) end
function rules.isinf(g, call) return g:add("IsInf", { g:input(call, 1) }) end
function rules.isfinite(g, call)
  local x <const> = g:input(call, 1)
  return g:add("Not", { g:add("Or", { g:add("IsNaN", { x }), g:add("IsInf", { x }) }) })
end
function rules.logical_not(g, call) return g:add("Not", { g:input(call, 1, "bool") }) end

-- The operands of a row of two, one of which may be a number.
local function operands(g, call, dtype)
  local args <const> = call.runs[1].args
  local function number(name)
    return g:number(call, dtype, function(run)
      local value <const> = run.args[name]
      if dtype == "bool" then return value ~= 0 and value ~= false end
      return dtype:find "^[iu]" and math.tointeger(value) or value
    end)
  end
  if args.a ~= nil then return number "a", g:input(call, 1, dtype) end
  if args.b ~= nil then return g:input(call, 1, dtype), number "b" end
  return g:input(call, 1, dtype), g:input(call, 2, dtype)
end

local BINARY <const> = { add = "Add", sub = "Sub", mul = "Mul", div = "Div", pow = "Pow",
                         maximum = "Max", minimum = "Min" }
for op, node in next, BINARY do
  rules[op] = function(g, call) return g:add(node, { operands(g, call, dtype_of(call)) }) end
end

-- Division rounded down, and what remains: with the sign of the divisor.
local function floor_divide(g, a, b, whole)
  if not whole then return g:add("Floor", { g:add("Div", { a, b }) }) end
  return g:add("Div", { g:add("Sub", { a, g:add("Mod", { a, b }) }), b })
end

local function is_whole(dtype) return dtype:find "^[iu]" ~= nil end

function rules.floor_divide(g, call)
  local a, b = operands(g, call, dtype_of(call))
  return floor_divide(g, a, b, is_whole(dtype_of(call)))
end

function rules.remainder(g, call)
  local a, b = operands(g, call, dtype_of(call))
  if is_whole(dtype_of(call)) then return g:add("Mod", { a, b }) end
  return g:add("Sub", { a, g:add("Mul", { floor_divide(g, a, b, false), b }) })
end

function rules.fmod(g, call)
  return g:add("Mod", { operands(g, call, dtype_of(call)) }, { fmod = 1 })
end

-- Comparisons, in the dtype that both are promoted to; numbers count as floats beside floats.
local function compared(call)
  local dtype <const> = common(call)
  local args <const> = call.runs[1].args
  local number = args.a
  if number == nil then number = args.b end
  if math.type(number) == "float" and not dtype:find "f" then return "f32" end
  if math.type(number) == "integer" and dtype == "bool" then return "i64" end
  return dtype
end

local COMPARE <const> = { eq = "Equal", lt = "Less", le = "LessOrEqual", gt = "Greater",
                          ge = "GreaterOrEqual" }
for op, node in next, COMPARE do
  rules[op] = function(g, call) return g:add(node, { operands(g, call, compared(call)) }) end
end
function rules.ne(g, call) return g:add("Not", { rules.eq(g, call) }) end

local LOGICAL <const> = { logical_and = "And", logical_or = "Or", logical_xor = "Xor" }
for op, node in next, LOGICAL do
  rules[op] = function(g, call) return g:add(node, { operands(g, call, "bool") }) end
end

-- Of bools the operations on bits are these; integers have them in later versions of ONNX.
local function of_bools(op, rule)
  rules[op] = function(g, call)
    if dtype_of(call) ~= "bool" then
      g:refuse(call, "there is no ONNX form of it for %s: use bools", dtype_of(call))
    end
    return rule(g, call)
  end
end
for _, name in ipairs { "and", "or", "xor", "not" } do
  of_bools("bitwise_" .. name, rules["logical_" .. name])
end

-- Choices.
function rules.where(g, call)
  local dtype <const> = dtype_of(call)
  return g:add("Where", { g:input(call, 1, "bool"), g:input(call, 2, dtype),
                          g:input(call, 3, dtype) })
end

function rules.masked_fill(g, call)
  local dtype <const> = dtype_of(call)
  return g:add("Where", { g:input(call, 2, "bool"), g:constant(call.args.value, dtype),
                          g:input(call, 1, dtype) })
end

return rules
