-- stdlib/nn/weight_norm.lua: weight normalization: a parameter as a length times a direction
-- (Salimans and Kingma 2016).

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local parametrize = require "ltrain.nn.parametrize"

local WeightNorm = Module:extend("WeightNorm")

-- The norm of what each position of `dim` has, to be broadcast; of all with dim = false.
local function norm_but(x, dim)
  if not dim then return x:norm() end
  if x.ndim == 1 then return x:abs() end
  local dims = {}
  for d = 1, x.ndim do
    if d ~= dim then dims[#dims + 1] = d end
  end
  return x:norm { dims = dims, keepdim = true }
end

function WeightNorm:init(weight, dim)
  local value = weight:detach()
  self._dim = dim
  self.original0 = c.parameter(norm_but(value, dim)):requires_grad_(weight.requires_grad)
  self.original1 = c.parameter(value:clone()):requires_grad_(weight.requires_grad)
end

function WeightNorm:forward()
  local weight = self.original1 * (self.original0 / norm_but(self.original1, self._dim))
  return weight
end

--- Takes length and direction of a value.
function WeightNorm:assign(value)
  local _ <close> = c.allow_update()
  self.original0:copy_(norm_but(value, self._dim))
  self.original1:copy_(value)
end

local OPTIONS <const> = config.signature {
  { "name", type = "string", default = "weight", doc = "the parameter" },
  { "dim", type = "integer|boolean", default = 1,
    doc = "dim each of whose positions has a length; false: one for all" },
}

local who <const> = "weight_norm"

--- Makes a parameter of a module the product of a length for each position of `dim` and a
--- direction; returns the module.
return function(module, ...)
  local o = config.arguments(who, OPTIONS, ...)
  local weight = parametrize.parameter(module, o.name, who)
  local dim = o.dim
  if dim and (dim == true or dim < 1 or dim > weight.ndim) then
    errors.blame("%s: dim must be a dim of %s, or false: got %s", who, errors.show(weight),
      errors.show(dim))
  end
  return parametrize.register(module, o.name, WeightNorm(weight, dim))
end
