-- stdlib/ops/sorting.lua: operations based on sorting: lt.kthvalue, lt.msort, lt.nanquantile,
-- lt.isin.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local sorting = {}

local KTHVALUE <const> = config.signature {
  { "k", type = "integer", required = true, min = 1, doc = "1: the smallest" },
  { "dim", type = "integer", default = -1 }, { "keepdim", type = "boolean", default = false },
}
local NANQUANTILE <const> = config.signature {
  { "q", type = "number|tensor", required = true, doc = "0..1, a number or a list [Q]" },
  { "dim", type = "integer", doc = "by default all elements" },
  { "keepdim", type = "boolean", default = false },
  { "interpolation", type = "string", default = "linear",
    choices = { "linear", "lower", "higher", "midpoint", "nearest" } },
}
local ISIN <const> = config.signature {
  { "invert", type = "boolean", default = false, doc = "whether elements are not among them" },
}

--- The k-th smallest value along a dim, and its index.
---@param x Tensor [..., N, ...] -> [...], [...] i64
function sorting.kthvalue(x, k, dim, keepdim)
  arguments.tensor(x, "kthvalue", "x")
  local o <const> = config.arguments("kthvalue", KTHVALUE, k, dim, keepdim)
  local flat <const> = x.ndim == 0 and x:reshape { 1 } or x
  local along <const> = arguments.dim(o.dim, x.ndim, "kthvalue")
  local n <const> = flat.shape[along]
  if o.k > n then
    errors.blame("kthvalue: k = %d of %d: x is %s", o.k, n, errors.show_shape(x))
  end
  local values, indices = flat:sort(along)
  values, indices = values:narrow(along, o.k, 1), indices:narrow(along, o.k, 1)
  if o.keepdim and x.ndim > 0 then return values, indices end
  return values:squeeze(along), indices:squeeze(along)
end

--- x sorted along dim 1.
function sorting.msort(x)
  arguments.tensor(x, "msort", "x")
  local y <const> = x:sort(1)
  return y
end

-- Positions between sorted elements, as `interpolation` has them: the lower, the upper element, and
-- the weight of the upper one.
local function between(position, interpolation)
  local low, high = position:floor(), position:ceil()
  local weight = position - low
  if interpolation == "lower" then high = low end
  if interpolation == "higher" then low = high end
  if interpolation == "nearest" then low = position:round() high = low end
  if interpolation == "midpoint" then weight = c.full_like(weight, 0.5) end
  return low:long(), high:long(), weight
end

--- Quantiles of the elements that are not NaN; NaN where all are.
---@param x Tensor [..., N, ...] -> [...], or [Q, ...] of a list q
function sorting.nanquantile(x, q, dim, keepdim, interpolation)
  arguments.tensor(x, "nanquantile", "x")
  local o <const> = config.arguments("nanquantile", NANQUANTILE, q, dim, keepdim, interpolation)
  local along <const> = o.dim and x or x:reshape { -1 }
  local dim_of_x <const> = o.dim and arguments.dim(o.dim, x.ndim, "nanquantile")
  local last <const> = (along.ndim == 0 and along:reshape { 1 } or along):movedim(dim_of_x or 1, -1)
  local sorted <const> = last:sort(-1) -- NaN comes last
  local count <const> = last:isnan():logical_not():sum(-1, true)
  local asked <const> = c.is_tensor(o.q) and o.q:to(x.dtype)
    or c.tensor({ o.q }, { dtype = x.dtype, device = x.device })
  local list <const> = asked.ndim == 0 and asked:reshape { 1 } or asked
  local low, high, weight = between((count - 1):relu():to(x.dtype) * list, o.interpolation)
  local a <const>, b <const> = sorted:gather(-1, low), sorted:gather(-1, high)
  local y = c.where(weight:eq(0), a, a + (b - a) * weight)
  if o.keepdim then
    local dims = {}
    for k = 1, x.ndim do dims[k] = o.dim and k ~= dim_of_x and x.shape[k] or 1 end
    y = y:movedim(-1, 1):reshape { list.shape[1], table.unpack(dims) }
  else
    y = y:movedim(-1, 1)
  end
  if not c.is_tensor(o.q) or o.q.ndim == 0 then return y:select(1, 1) end
  return y
end

--- Whether each element of x is among those of `test`.
---@param x Tensor -> bool of the same shape
---@param test Tensor|number
function sorting.isin(x, test, invert)
  local o <const> = config.arguments("isin", ISIN, invert)
  arguments.tensor(x, "isin", "x")
  local known <const> = c.is_tensor(test) and test:reshape { -1 } or c.tensor { test }
  local flat <const> = x:reshape { -1 }
  local found
  if known.shape[1] == 0 then
    found = c.zeros(flat.shape, { dtype = "bool", device = x.device })
  elseif known.shape[1] <= 16 then -- each with each
    found = flat:unsqueeze(2):eq(known:unsqueeze(1)):any(2)
  else
    local sorted <const> = known:sort()
    local at <const> = c.searchsorted(sorted, flat):clamp(0, sorted.shape[1] - 1)
    found = sorted:gather(1, at):eq(flat)
  end
  if o.invert then found = found:logical_not() end
  return found:reshape(x.shape)
end

return sorting
