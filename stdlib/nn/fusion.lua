-- stdlib/nn/fusion.lua: fuses a convolution or linear layer with the batch norm after it, for
-- inference.

local c = require "ltrain.c"
local deepcopy = require "ltrain.nn.deepcopy"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local fusion = {}

-- The weight and the bias of both; `shape` broadcasts a number for each output over the weight.
local function fused(weight, bias, bn, shape)
  local factor = (bn.running_var + bn.eps):rsqrt()
  local scale = bn.weight and factor * bn.weight or factor
  local shift = (bias and bias - bn.running_mean or -bn.running_mean) * scale
  if bn.bias then shift = shift + bn.bias end
  return (weight * scale:reshape(shape)):to(weight.dtype),
    shift:to((bias or weight).dtype)
end

local function check(layer, bn, who)
  for _, module in ipairs { layer, bn } do
    if not walk.is_module(module) then
      errors.blame("%s: needs two modules: got %s", who, errors.show(module))
    elseif module.training then
      errors.blame("%s: %s must be in evaluation mode: call :eval()", who,
        walk.class_name(module))
    end
  end
  if not bn.running_mean then
    errors.blame("%s: %s has no running averages", who, walk.class_name(bn))
  end
end

local function with(layer, bn, shape)
  local _ <close> = c.no_grad()
  local made = deepcopy(layer)
  local weight, bias = fused(made.weight, made.bias, bn, shape)
  local flags = { requires_grad = made.weight.requires_grad }
  made.weight, made.bias = c.parameter(weight, flags), c.parameter(bias, flags)
  return made
end

function fusion.conv(conv, bn, transpose)
  check(conv, bn, "fuse_conv_bn_eval")
  local shape = {}
  for d = 1, conv.weight.ndim do shape[d] = d == (transpose and 2 or 1) and -1 or 1 end
  return with(conv, bn, shape)
end

function fusion.linear(linear, bn)
  check(linear, bn, "fuse_linear_bn_eval")
  return with(linear, bn, { -1, 1 })
end

return fusion
