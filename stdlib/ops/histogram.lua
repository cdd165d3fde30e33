-- stdlib/ops/histogram.lua: lt.histogram and lt.histogramdd: how many values, or how much weight,
-- fall between the edges of bins, of one number or of several together.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local histogram = {}

local OPTIONS <const> = config.signature {
  { "range", type = "table", doc = "the first and the last edge (of each column), by default the "
    .. "smallest and the largest value" },
  { "weight", type = "tensor", doc = "what each value counts, by default 1" },
  { "density", type = "boolean", default = false,
    doc = "by the volumes of the bins, so that the integral is 1" },
}

-- The edges of one column [N]: those that are given, or `bins` equal ones from `first` to `last`.
local function edges_of(who, x, bins, first, last)
  if c.is_tensor(bins) then return bins end
  bins = config.argument(bins, "integer", who, "bins", { min = 1 })
  if not first then
    first, last = 0, 1
    if x:numel() > 0 then first, last = x:min():item(), x:max():item() end
  end
  if first > last or first - first ~= 0 or last - last ~= 0 then
    errors.blame("%s: no bins from %s to %s", who, first, last)
  end
  if first == last then first, last = first - 0.5, last + 0.5 end
  return c.linspace(first, last, bins + 1, { dtype = x.dtype, device = x.device })
end

-- Of columns [N, D] with the edges of each: the sums of weights [bins 1, bins 2, ...].
local function count(x, edges, o)
  local sizes, total = {}, 1
  local position = c.zeros({ x.shape[1] }, { dtype = "i64", device = x.device })
  local inside = position:eq(0)
  for k, list in ipairs(edges) do
    local column <const>, n <const> = x:select(2, k):contiguous(), list.shape[1] - 1
    local bin = c.searchsorted(list, column, { right = true }) - 1
    bin = bin - column:eq(list[n + 1]):long() -- the last edge is of the last bin
    inside = inside:logical_and(bin:ge(0)):logical_and(bin:lt(n))
    position = position * n + bin:clamp(0, n - 1)
    sizes[k], total = n, total * n
  end
  local weight <const> = o.weight and o.weight:reshape { -1 } or c.ones_like(position)
  local y <const> = c.zeros({ total }, { dtype = x.dtype, device = x.device })
    :scatter_add(1, position, weight:to(x.dtype) * inside:to(x.dtype)):reshape(sizes)
  if not o.density then return y end
  local density = y / y:sum()
  for k, list in ipairs(edges) do
    local shape = {}
    for j = 1, #edges do shape[j] = j == k and sizes[k] or 1 end
    density = density / list:diff():reshape(shape)
  end
  return density
end

local function check(who, x, o, shape)
  if not arguments.is_float(x) then
    errors.blame("%s: x must be floating, got %s", who, x.dtype)
  end
  if o.weight and errors.show_shape(o.weight) ~= shape then
    errors.blame("%s: weight is %s, x has %s values", who, errors.show_shape(o.weight), shape)
  end
end

--- The histogram of all values, and the edges of its bins: a bin has its lower edge, the last one
--- its upper one too.
---@param x Tensor
---@param bins integer how many of one width, or their edges, a tensor [bins + 1]
function histogram.histogram(x, bins, range, weight, density)
  arguments.tensor(x, "histogram", "x")
  local o <const> = config.arguments("histogram", OPTIONS, range, weight, density)
  check("histogram", x, o, errors.show_shape(x))
  local ends <const> = o.range or {}
  local edges <const> = edges_of("histogram", x, bins, ends[1], ends[2])
  return count(x:reshape { -1, 1 }, { edges }, o), edges
end

--- The histogram [bins 1, .., bins D] of points, and a list of the edges of each column.
---@param x Tensor [..., D]
---@param bins table for each column how many bins, or their edges; an integer is of all columns
function histogram.histogramdd(x, bins, range, weight, density)
  arguments.tensor(x, "histogramdd", "x")
  local o <const> = config.arguments("histogramdd", OPTIONS, range, weight, density)
  if x.ndim < 2 then
    errors.blame("histogramdd: needs points [.., D], got %s", errors.show_shape(x))
  end
  local d <const> = x.shape[x.ndim]
  check("histogramdd", x, o, errors.show_shape { shape = { table.unpack(x.shape, 1, x.ndim - 1) } })
  if type(bins) == "table" and #bins ~= d then
    errors.blame("histogramdd: bins of %d columns: x is %s", #bins, errors.show_shape(x))
  end
  local points <const>, edges, ends <const> = x:reshape { -1, d }, {}, o.range or {}
  for k = 1, d do
    edges[k] = edges_of("histogramdd", points:select(2, k),
      type(bins) == "table" and bins[k] or bins, ends[2 * k - 1], ends[2 * k])
  end
  return count(points, edges, o), edges
end

return histogram
