-- stdlib/strategies/float8/Float8Linear.lua: nn.Linear whose three products are of float8 factors:
-- e4m3 forward, gradients in e5m2 (the format HYBRID of NVIDIA's Transformer Engine).
-- N rows, I inputs, O outputs.
--
-- Where autocast is on; elsewhere, and in copies of the module, it is nn.Linear. Sums are f32.
local Function = require "ltrain.autograd.Function"
local Linear = require "ltrain.nn.Linear"
local c = require "ltrain.c"

local Float8Linear = Linear:extend("Float8Linear")

local INPUT <const>, WEIGHT <const>, GRADIENT <const> = 1, 2, 3

-- module -> { scaling =, layer = its number there }
local own = setmetatable({}, { __mode = "k" })

local function multiply(a, b, scale_a, scale_b, dtype, format_a)
  return c.scaled_mm(a, b, scale_a, scale_b, { format_a = format_a or "e4m3", dtype = dtype })
end

local function forward(ctx, x, weight, bias, call)
  local scaling, layer <const>, records <const> = call.scaling, call.layer, call.records
  local qx, x_scale = scaling:quantize(layer, INPUT, x:reshape(-1, x.shape[x.ndim]), records)
  local qw, w_scale = scaling:quantize(layer, WEIGHT, weight, records)
  ctx:save_for_backward(qx, qw, x_scale, w_scale)
  ctx.call, ctx.shape, ctx.x_dtype, ctx.w_dtype = call, x.shape, x.dtype, weight.dtype
  ctx.bias_dtype = bias and bias.dtype
  local y = multiply(qx, qw, x_scale, w_scale, call.dtype)
  local shape <const> = table.move(x.shape, 1, x.ndim - 1, 1, {})
  shape[x.ndim] = weight.shape[1]
  if bias then y = y + bias:to(call.dtype) end
  return y:reshape(shape)
end

-- Of y = x w^T + b: dx = g w, dw = g^T x, db the sum of g over its rows.
local function backward(ctx, grad)
  local qx, qw, x_scale, w_scale = ctx:saved_tensors()
  local call, needs = ctx.call, ctx.needs_input_grad
  local g = grad:reshape(-1, grad.shape[grad.ndim])
  local qg, g_scale = call.scaling:quantize(call.layer, GRADIENT, g, true)
  local dx = needs[1]
    and multiply(qg, qw:t(), g_scale, w_scale, ctx.x_dtype, "e5m2"):reshape(ctx.shape)
  local dw = needs[2] and multiply(qg:t(), qx:t(), g_scale, x_scale, ctx.w_dtype, "e5m2")
  local db = needs[3] and g:sum(1):to(ctx.bias_dtype)
  return dx or nil, dw or nil, db or nil
end

local linear <const> = Function { name = "float8_linear", forward = forward, backward = backward,
  once_differentiable = true }

--- Whether a module is an nn.Linear that can be one: float8 products take dims that are multiples
--- of 16.
function Float8Linear.suits(module)
  local meta = getmetatable(module)
  return (meta == Linear or meta == Float8Linear) and module.in_features % 16 == 0
    and module.out_features % 16 == 0
end

--- Makes an nn.Linear one, layer number `layer` of `scaling`; Float8Linear.revert undoes it.
function Float8Linear.convert(module, scaling, layer)
  own[module] = { scaling = scaling, layer = layer }
  setmetatable(module, Float8Linear)
end

function Float8Linear.revert(module)
  own[module] = nil
  setmetatable(module, Linear)
end

---@param x Tensor [N, I] -> [N, O]
function Float8Linear:forward(x)
  local place <const>, dtype <const> = own[self], c.is_autocast_enabled()
  if not (place and dtype) then
    local y = c.linear(x, self.weight, self.bias)
    return y
  end
  local y = linear(x, self.weight, self.bias, { scaling = place.scaling, layer = place.layer,
    dtype = dtype, records = c.is_grad_enabled() })
  return y
end

return Float8Linear
