-- stdlib/ops/differences.lua: lt.diff, lt.trapezoid and lt.cumulative_trapezoid: differences of
-- neighbours, and integrals by the trapezoidal rule.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local differences = {}

local DIFF <const> = config.signature {
  { "n", type = "integer", default = 1, min = 0, doc = "order of the difference" },
  { "dim", type = "integer", default = -1 },
  { "prepend", type = "tensor", doc = "values to prepend to x along the dim" },
  { "append", type = "tensor", doc = "values to append to x along the dim" },
}
local TRAPEZOID <const> = config.signature {
  { "x", type = "tensor", doc = "where y is known: [N], or a tensor that broadcasts with y" },
  { "dx", type = "number", default = 1, doc = "without x: the distance of neighbours" },
  { "dim", type = "integer", default = -1 },
}

-- The dim from 1; raises where x has none.
local function dim_of(x, dim, who)
  if x.ndim == 0 then errors.blame("%s: x must have a dim: got []", who) end
  return arguments.dim(dim, x.ndim, who)
end

-- The later and the earlier neighbours.
local function neighbours(x, dim)
  local n <const> = x.shape[dim]
  if n < 2 then
    local none = x:narrow(dim, 1, 0)
    return none, none
  end
  return x:narrow(dim, 2, n - 1), x:narrow(dim, 1, n - 1)
end

--- The n-th forward difference along a dim: x[i + 1] - x[i]; for bools whether they differ.
---@param x Tensor [..., N, ...] -> [..., N - n, ...]
function differences.diff(x, n, dim, prepend, append)
  arguments.tensor(x, "diff", "x")
  local o <const> = config.arguments("diff", DIFF, n, dim, prepend, append)
  local along <const> = dim_of(x, o.dim, "diff")
  if o.n == 0 then return x end
  local list = { o.prepend, x }
  if not o.prepend then list = { x } end
  list[#list + 1] = o.append
  local y = #list > 1 and c.cat(list, along) or x
  for _ = 1, o.n do
    local later, earlier = neighbours(y, along)
    y = y.dtype == "bool" and later:logical_xor(earlier) or later - earlier
  end
  return y
end

-- The areas between neighbours of y, and the dim.
local function areas(who, y, ...)
  arguments.tensor(y, who, "y")
  local o <const> = config.arguments(who, TRAPEZOID, ...)
  local dim <const> = dim_of(y, o.dim, who)
  local later, earlier = neighbours(y, dim)
  if not o.x then return (later + earlier) * (o.dx / 2), dim end
  local x = o.x
  if x.ndim == 1 and y.ndim > 1 then -- one list for all
    local shape = {}
    for k = 1, y.ndim do shape[k] = k == dim and x.shape[1] or 1 end
    x = x:reshape(shape)
  end
  return (later + earlier) * (differences.diff(x, 1, dim - y.ndim - 1) / 2), dim
end

--- The integral of y along a dim by the trapezoidal rule.
---@param y Tensor [..., N, ...] -> [...]
function differences.trapezoid(y, x, dx, dim)
  local all <const>, along <const> = areas("trapezoid", y, x, dx, dim)
  return all:sum(along)
end

--- Cumulative integrals of y along a dim, by the trapezoidal rule.
---@param y Tensor [..., N, ...] -> [..., N - 1, ...]
function differences.cumulative_trapezoid(y, x, dx, dim)
  local all <const>, along <const> = areas("cumulative_trapezoid", y, x, dx, dim)
  return all:cumsum(along)
end

return differences
