-- stdlib/onnx/activations.lua: ONNX nodes for activations with numbers, and norms by squares.

local rules = {}

-- rules[op] = fn(add, x, k, args): `add(node, ...)` adds a node, `k(number)` is a constant of the
-- value's dtype, `args` are the numbers of the call.
local function rule(op, fn)
  rules[op] = function(g, call)
    local dtype <const> = call.outputs[1].dtype
    local function add(node, ...) return g:add(node, { ... }) end
    local function k(number) -- integers take what is left of it without its fraction
      if dtype:find "^[iu]" then number = number < 0 and math.ceil(number) or math.floor(number) end
      return g:constant(number, dtype)
    end
    return fn(add, g:input(call, 1, dtype), k, call.args)
  end
end

-- x, or what is made of it where it is not positive.
local function below(add, x, k, made)
  return add("Where", add("Greater", x, k(0)), x, made)
end

rule("leaky_relu", function(add, x, k, args)
  return below(add, x, k, add("Mul", x, k(args.negative_slope)))
end)
rule("elu", function(add, x, k, args)
  return below(add, x, k, add("Mul", add("Sub", add("Exp", x), k(1)), k(args.alpha)))
end)
rule("celu", function(add, x, k, args)
  local grown <const> = add("Exp", add("Div", x, k(args.alpha)))
  return below(add, x, k, add("Mul", add("Sub", grown, k(1)), k(args.alpha)))
end)
rule("selu", function(add, x, k)
  local scale <const>, alpha = 1.0507009873554805, 1.6732632423543772
  local low <const> = add("Mul", add("Sub", add("Exp", x), k(1)), k(alpha))
  return add("Mul", below(add, x, k, low), k(scale))
end)
rule("softplus", function(add, x, k, args)
  if args.beta == 1 and args.threshold >= 20 then return add("Softplus", x) end
  local scaled <const> = add("Mul", x, k(args.beta))
  local soft <const> = add("Div", add("Softplus", scaled), k(args.beta))
  return add("Where", add("Greater", scaled, k(args.threshold)), x, soft)
end)
rule("logsigmoid", function(add, x) return add("Neg", add("Softplus", add("Neg", x))) end)
rule("mish", function(add, x) return add("Mul", x, add("Tanh", add("Softplus", x))) end)
rule("relu6", function(add, x, k) return add("Clip", x, k(0), k(6)) end)
rule("hardtanh", function(add, x, k, args)
  return add("Clip", x, k(args.min_val), k(args.max_val))
end)
local function hardsigmoid(add, x, k)
  return add("Div", add("Clip", add("Add", x, k(3)), k(0), k(6)), k(6))
end
rule("hardsigmoid", hardsigmoid)
rule("hardswish", function(add, x, k) return add("Mul", x, hardsigmoid(add, x, k)) end)
rule("softsign", function(add, x, k) return add("Div", x, add("Add", add("Abs", x), k(1))) end)
rule("tanhshrink", function(add, x) return add("Sub", x, add("Tanh", x)) end)
rule("softshrink", function(add, x, k, args)
  local rest <const> = add("Sub", add("Abs", x), k(args.lambd))
  return add("Mul", add("Sign", x), add("Max", rest, k(0)))
end)
rule("hardshrink", function(add, x, k, args)
  return add("Where", add("Greater", add("Abs", x), k(args.lambd)), x, k(0))
end)
rule("threshold", function(add, x, k, args)
  return add("Where", add("Greater", x, k(args.threshold)), x, k(args.value))
end)

-- Half precision is computed in f32, as here.
function rules.rms_norm(g, call)
  local dtype <const> = call.inputs[1].dtype
  local wide <const> = dtype == "f64" and "f64" or "f32"
  local x <const>, axes = g:input(call, 1, wide), {}
  for k = 1, #call.args.normalized_shape do axes[k] = -k end
  local square <const> = g:add("ReduceMean", { g:add("Mul", { x, x }) }, { axes = axes })
  local root <const> = g:add("Sqrt", { g:add("Add", { square, g:constant(call.args.eps, wide) }) })
  local y, weight = g:add("Div", { x, root }), g:input(call, 2, wide)
  if weight then y = g:add("Mul", { y, weight }) end
  return g:cast(y, wide, dtype)
end

return rules
