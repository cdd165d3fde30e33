-- stdlib/nn/LayerNorm.lua: layer normalization over the last dims.
-- N any leading dims, S the normalized shape.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local LayerNorm = Module:extend("LayerNorm")

LayerNorm.__arguments = "normalized_shape | eps elementwise_affine bias"

LayerNorm.options = {
  eps = { type = "number", default = 1e-5, min = 0, doc = "added to the variance" },
  elementwise_affine = { type = "boolean", default = true, doc = "learn a weight" },
  bias = { type = "boolean", default = true, doc = "learn a bias, if there is a weight" },
}

--- nn.LayerNorm(128) or nn.LayerNorm({8, 16}): the sizes of the dims to normalize over
function LayerNorm:init(normalized_shape, options)
  local where = "nn." .. self.__name
  local shape = type(normalized_shape) == "table" and normalized_shape or { normalized_shape }
  if #shape == 0 or #shape > 8 then
    errors.blame("%s: normalized_shape must be a size or a list of 1 to 8 sizes: got %s", where,
      errors.show(normalized_shape))
  end
  for i, size in ipairs(shape) do
    config.argument(size, "integer", where, ("normalized_shape[%d]"):format(i), { min = 1 })
  end
  local o = config.check(options, self.options, where)
  self.normalized_shape, self.eps = table.move(shape, 1, #shape, 1, {}), o.eps
  if o.elementwise_affine then
    self.weight = c.parameter(c.ones(shape))
    if o.bias then self.bias = c.parameter(c.zeros(shape)) end
  end
end

---@param x Tensor [N, S] -> [N, S]
function LayerNorm:forward(x)
  local y = c.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
  return y
end

function LayerNorm:extra_repr()
  local shape = self.normalized_shape
  local sizes = #shape == 1 and tostring(shape[1]) or ("{%s}"):format(table.concat(shape, ", "))
  return self.eps and ("%s, {eps = %g}"):format(sizes, self.eps) or sizes
end

return LayerNorm
