-- stdlib/ops/bilinear.lua: lt.bilinear, x1^T W x2 + b. N any leading dims, I and J inputs, O
-- outputs.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

--- y[o] = x1^T weight[o] x2 + bias[o].
---@param x1 Tensor [N, I]
---@param x2 Tensor [N, J] -> [N, O]
---@param weight Tensor [O, I, J]
---@param bias Tensor|nil [O]
return function(x1, x2, weight, bias)
  arguments.tensor(x1, "bilinear", "x1")
  arguments.tensor(x2, "bilinear", "x2")
  arguments.tensor(weight, "bilinear", "weight")
  local o, i, j = table.unpack(weight.shape)
  if weight.ndim ~= 3 or x1.shape[x1.ndim] ~= i or x2.shape[x2.ndim] ~= j then
    errors.blame("bilinear: weight must be [O, I, J] of x1 [N, I] and x2 [N, J]: got %s, %s and %s",
      errors.show_shape(weight), errors.show_shape(x1), errors.show_shape(x2))
  end
  local shape = { table.unpack(x1.shape, 1, x1.ndim - 1) }
  for k, n in ipairs(shape) do
    if x2.ndim ~= x1.ndim or x2.shape[k] ~= n then
      errors.blame("bilinear: x1 and x2 differ before their last dim: %s and %s",
        errors.show_shape(x1), errors.show_shape(x2))
    end
  end
  shape[#shape + 1], shape[#shape + 2] = o, j
  local rows <const> = weight:permute { 1, 3, 2 }:reshape(o * j, i)
  local y <const> = (c.linear(x1, rows):reshape(shape) * x2:unsqueeze(-2)):sum(-1)
  return bias and y + bias or y
end
