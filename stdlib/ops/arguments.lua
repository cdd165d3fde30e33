-- stdlib/ops/arguments.lua: argument checks that the operations in this folder share.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"

local arguments = {}

--- Raises unless x is a tensor; `who` begins the text, `name` is what the operation calls it.
function arguments.tensor(x, who, name)
  if not c.is_tensor(x) then
    errors.blame("%s: %s must be a tensor, got %s", who, name, errors.show(x))
  end
end

--- The dim from 1, of a tensor with `ndim` of them (one of none counts as having one).
function arguments.dim(dim, ndim, who)
  local n <const> = math.max(ndim, 1)
  local k <const> = math.type(dim) == "integer" and (dim < 0 and dim + n + 1 or dim)
  if not k or k < 1 or k > n then
    errors.blame("%s: dim %s is out of range: there are %d", who, errors.show(dim), n)
  end
  return k
end

--- Whether x is floating.
function arguments.is_float(x) return is_float(x.dtype) end

--- x in the dtype in which it is computed: halves in f32. Raises unless it is floating.
function arguments.wide(x, who, name)
  if x.dtype == "f16" or x.dtype == "bf16" then return x:to "f32" end
  if x.dtype ~= "f32" and x.dtype ~= "f64" then
    errors.blame("%s: %s must be a floating tensor, got %s", who, name, x.dtype)
  end
  return x
end

return arguments
