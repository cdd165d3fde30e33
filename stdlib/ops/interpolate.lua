-- stdlib/ops/interpolate.lua: lt.interpolate, which resizes signals, images or volumes. N batch, C
-- channels.

local OPTIONS <const> = require "ltrain.ops.interpolate_options"
local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local call_form = require "ltrain.core.call_form"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local resize_by_matrix = require "ltrain.ops.resize_by_matrix"
local resize_nearest = require "ltrain.ops.resize_nearest"
local trace_leaf = require "ltrain.ops.trace_leaf"

local who <const> = "interpolate"
local MOST <const> = OPTIONS.size.max

-- How many dims after N and C a mode is for (nil: any), and the weights of one dim.
local MODES <const> = {
  nearest = {}, ["nearest-exact"] = {}, area = {},
  linear = { dims = 1, kind = "linear" }, bilinear = { dims = 2, kind = "linear" },
  trilinear = { dims = 3, kind = "linear" }, bicubic = { dims = 2, kind = "cubic" },
}

local function check_mode(x, o)
  local mode <const>, dims = MODES[o.mode], x.ndim - 2
  if dims < 1 or dims > 3 or mode.dims and dims ~= mode.dims then
    local wanted <const> = mode.dims and mode.dims + 2 or "3, 4 or 5"
    errors.blame("%s: mode '%s' needs x with %s dims [N, C, ...]: got %s", who, o.mode, wanted,
      errors.show_shape(x))
  end
  if o.align_corners ~= nil and not mode.kind then
    errors.blame("%s: align_corners is an option of the linear and cubic modes: got mode '%s'", who,
      o.mode)
  end
  if o.antialias and not (o.mode == "bilinear" or o.mode == "bicubic") then
    errors.blame("%s: antialias is an option of modes 'bilinear' and 'bicubic': got mode '%s'", who,
      o.mode)
  end
end

-- A value for each dim.
local function each(x, value, name)
  local list <const> = {}
  for k = 1, x.ndim - 2 do list[k] = type(value) == "table" and value[k] or value end
  if type(value) == "table" and #value ~= x.ndim - 2 then
    errors.blame("%s: %s has %d numbers for the %d dims of %s after the first two", who, name,
      #value, x.ndim - 2, errors.show_shape(x))
  end
  return list
end

-- The sizes of the result, and the factors by which positions are computed (nil: from the sizes).
local function sizes_of(x, o)
  if (o.size == nil) == (o.scale_factor == nil) then
    errors.blame("%s: needs size or scale_factor%s", who, o.size and ", got both" or "")
  end
  if o.size then
    if o.recompute_scale_factor then
      errors.blame("%s: recompute_scale_factor is an option of scale_factor: size is given", who)
    end
    return each(x, o.size, "size"), {}
  end
  local factors <const>, sizes = each(x, o.scale_factor, "scale_factor"), {}
  for k, factor in ipairs(factors) do
    local size = x.shape[k + 2] * (factor + 0.0)
    if size > MOST then
      errors.blame("%s: scale_factor = %g makes a size of %g of %s: at most %d", who, factor, size,
        errors.show_shape(x), MOST)
    end
    sizes[k] = math.floor(size)
    if sizes[k] < 1 then
      errors.blame("%s: scale_factor = %g leaves nothing of %s", who, factor, errors.show_shape(x))
    end
  end
  return sizes, o.recompute_scale_factor and {} or factors
end

-- What shrinks comes first, what grows last: less is computed.
local function in_order(x, sizes)
  local dims = {}
  for k = 1, #sizes do dims[k] = k end
  table.sort(dims, function(a, b)
    local p, q = sizes[a] / x.shape[a + 2], sizes[b] / x.shape[b + 2]
    return p < q or p == q and a < b
  end)
  return dims
end

local function weighed(x, kind, sizes, factors, o)
  local _ <close> = c.autocast(false)
  local y = arguments.wide(x, who, "x")
  for _, k in ipairs(in_order(x, sizes)) do
    local n <const>, m = x.shape[k + 2], sizes[k]
    local is_same <const> = n == m and (not factors[k] or factors[k] == 1
      or kind == "linear" and not o.antialias)
    if not is_same then
      y = resize_by_matrix.along(y, k + 2, resize_by_matrix.rows(n, m, kind, o, factors[k]))
    end
  end
  y = y:to(x.dtype)
  return rawequal(y, x) and x:clone() or y
end

-- The same, as one call for exporters: ONNX has a node for it, but in double precision, and with
-- antialiasing.
local function exportable(x, kind, sizes, factors, o)
  if o.antialias or x.dtype == "f64" then return weighed(x, kind, sizes, factors, o) end
  local args <const> = { kind = kind, align_corners = o.align_corners or false, factors = factors }
  return trace_leaf.call(who, args, x, function()
    return weighed(x, kind, sizes, factors, o)
  end)
end

local function repeated(x, sizes, factors, o)
  local y = x
  for k, m in ipairs(sizes) do
    y = resize_nearest.along(y, k + 2, m, factors[k], o.mode == "nearest-exact")
  end
  return rawequal(y, x) and x:clone() or y
end

--- Resizes the dims of x [N, C, ...] after the first two, to `size` or by `scale_factor`, with
--- nearest-neighbour, linear or cubic interpolation, or averages over areas. Interpolation
--- multiplies elements by weights, which may be 0, so an infinite or NaN element gives NaN around
--- it.
return call_form.method(function(x, options)
  arguments.tensor(x, who, "x")
  local o <const> = config.check(options, OPTIONS, who)
  check_mode(x, o)
  local sizes <const>, factors = sizes_of(x, o)
  for k = 3, x.ndim do
    if x.shape[k] == 0 then errors.blame("%s: %s is empty", who, errors.show_shape(x)) end
  end
  if o.mode == "area" then
    local y <const> = c[("adaptive_avg_pool%dd"):format(#sizes)](x, sizes)
    return y
  end
  local kind <const> = MODES[o.mode].kind
  local y <const> = kind and exportable(x, kind, sizes, factors, o)
    or repeated(x, sizes, factors, o)
  return y
end, who, 1, "size scale_factor mode align_corners recompute_scale_factor antialias")
