-- stdlib/nn/Unflatten.lua: splits a dim into several.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local Unflatten = Module:extend("Unflatten")

Unflatten.__arguments = "dim unflattened_size"

--- nn.Unflatten(2, {3, 8, 8}): the dim and the sizes to split it into, one of which may be -1
function Unflatten:init(dim, sizes)
  self.dim = config.argument(dim, "integer", "nn.Unflatten", "dim")
  self.sizes = config.argument(sizes, "table", "nn.Unflatten", "sizes")
end

---@param x Tensor [B, N, ...] -> [B, N1, N2, ..., ...]
function Unflatten:forward(x)
  local dim = self.dim < 0 and x.ndim + 1 + self.dim or self.dim
  if dim < 1 or dim > x.ndim then
    errors.blame("nn.Unflatten: dim %d is out of range for %s", self.dim, errors.show(x))
  end
  local shape, rest = { table.unpack(x.shape, 1, dim - 1) }, { table.unpack(x.shape, dim + 1) }
  table.move(self.sizes, 1, #self.sizes, #shape + 1, shape)
  table.move(rest, 1, #rest, #shape + 1, shape)
  local y = c.reshape(x, shape)
  return y
end

function Unflatten:extra_repr()
  return ("%d, {%s}"):format(self.dim, table.concat(self.sizes, ", "))
end

return Unflatten
