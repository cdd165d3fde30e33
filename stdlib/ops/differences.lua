-- stdlib/ops/differences.lua: lt.diff, lt.gradient, lt.trapezoid and lt.cumulative_trapezoid:
-- differences of neighbours, finite differences, and integrals by the trapezoidal rule.

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

local GRADIENT <const> = config.signature {
  { "spacing", type = "number|tensor|table", default = 1,
    doc = "the distance of neighbours, or their coordinates [N]; a list: one for each dim" },
  { "dim", type = "integer|table", doc = "one or a list; by default all" },
  { "edge_order", type = "integer", default = 1, choices = { 1, 2 },
    doc = "the order of the estimates at both ends" },
}

-- The estimate at an end of three neighbours: `near` and `far` are the distances from it.
local function at_end(y0, y1, y2, near, far)
  local all <const> = near + far
  return (y1 - y0) * (all / (near * far)) - (y2 - y0) * (near / (far * all))
end

-- Finite differences along a dim; `steps` [N - 1, 1...] are the distances, or a number.
local function slopes(y, dim, steps, edge_order)
  local n <const> = y.shape[dim]
  local is_list <const> = c.is_tensor(steps)
  local function step(from, count)
    return is_list and steps:narrow(dim, from, count) or steps
  end
  local function value(at) return y:narrow(dim, at, 1) end
  local first, last
  if edge_order == 2 then
    first = at_end(value(1), value(2), value(3), step(1, 1), step(2, 1))
    last = -at_end(value(n), value(n - 1), value(n - 2), step(n - 1, 1), step(n - 2, 1))
  else
    first, last = (value(2) - value(1)) / step(1, 1), (value(n) - value(n - 1)) / step(n - 1, 1)
  end
  if n == 2 then return c.cat({ first, last }, dim) end
  local before, here, after =
    y:narrow(dim, 1, n - 2), y:narrow(dim, 2, n - 2), y:narrow(dim, 3, n - 2)
  local left, right = step(1, n - 2), step(2, n - 2)
  local up, down = (after - here) * left / right, (here - before) * right / left
  return c.cat({ first, (up + down) / (left + right), last }, dim)
end

-- The distances along `dim` of what spacing says of it.
local function steps_of(x, spacing, dim)
  if not c.is_tensor(spacing) then
    return config.argument(spacing, "number", "gradient", "spacing")
  end
  if spacing.ndim ~= 1 or spacing:numel() ~= x.shape[dim] then
    errors.blame("gradient: spacing must be coordinates [%d] of dim %d: got %s", x.shape[dim], dim,
      errors.show_shape(spacing))
  end
  local shape = {}
  for k = 1, x.ndim do shape[k] = k == dim and x.shape[dim] - 1 or 1 end
  return differences.diff(spacing):to(x.dtype):reshape(shape)
end

--- Estimates of the derivatives of a function by the values x that it has, by central differences:
--- a list of tensors of the shape of x, one for each dim.
---@param x Tensor [..., N, ...]
function differences.gradient(x, spacing, dim, edge_order)
  arguments.tensor(x, "gradient", "x")
  local o <const> = config.arguments("gradient", GRADIENT, spacing, dim, edge_order)
  local dims, list = type(o.dim) == "number" and { o.dim } or o.dim or {}, {}
  for k = 1, o.dim and 0 or x.ndim do dims[k] = k end
  local listed <const> = type(o.spacing) == "table"
  if listed and #o.spacing ~= #dims then
    errors.blame("gradient: needs one spacing for each of %d dims: got %d", #dims, #o.spacing)
  end
  if not arguments.is_float(x) then x = x:to "f32" end
  local is_done <const> = {}
  for k, given in ipairs(dims) do
    local along <const> = dim_of(x, given, "gradient")
    if x.shape[along] <= o.edge_order then
      errors.blame("gradient: dim %d has %d elements; edge_order = %d needs %d", along,
        x.shape[along], o.edge_order, o.edge_order + 1)
    end
    if is_done[along] then errors.blame("gradient: dim %d is given twice", given) end
    is_done[along] = true
    local steps <const> = steps_of(x, listed and o.spacing[k] or o.spacing, along)
    list[k] = slopes(x, along, steps, o.edge_order)
  end
  return list
end

return differences
