-- stdlib/ops/indexing.lua: parts of tensors read or replaced at positions: lt.index_copy,
-- lt.index_fill, lt.index_put, lt.take, lt.put, lt.select_scatter, ... What index tensors hold
-- counts from 0, dims and positions of `select` and `slice` from 1.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local call_form = require "ltrain.core.call_form"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local operation <const> = c.runtime.operation

local indexing = {}

local STATIC <const> = config.signature {
  { "size", type = "integer", required = true, min = 0, doc = "number of rows of the result" },
  { "fill_value", type = "integer", default = -1, doc = "value of padding rows" },
}
local SELECT <const> = config.signature {
  { "dim", type = "integer", required = true },
  { "index", type = "integer", required = true, doc = "the position, from 1" },
}
local SLICE <const> = config.signature {
  { "dim", type = "integer", default = 1 },
  { "from", type = "integer", doc = "the first position" },
  { "to", type = "integer", doc = "the last position" },
  { "step", type = "integer", doc = "1 if it is not given" },
}
local DIAGONAL <const> = config.signature {
  { "offset", type = "integer", default = 0, doc = "offset from the main diagonal, positive "
    .. "above it" },
  { "dim1", type = "integer", default = 1 }, { "dim2", type = "integer", default = 2 },
}

-- The dim from 1, and the length of the index [N] or []. `last`: the argument behind them.
local function check(who, x, dim, index, last)
  arguments.tensor(x, who, "x")
  if c.is_tensor(dim) then
    errors.blame("%s: the dim comes before the index; it is %s(x, dim, index, %s)", who, who, last)
  end
  local k <const> = arguments.dim(dim, x.ndim, who)
  arguments.tensor(index, who, "index")
  if index.ndim > 1 then
    errors.blame("%s: index must be [N]: got %s", who, errors.show_shape(index))
  end
  return k, index:numel()
end

-- x with the positions of a dim that `index` lists replaced by those of `source`.
local function copy(x, k, index, source)
  if x.ndim == 0 then
    return copy(x:reshape { 1 }, 1, index, source:reshape { 1 }):reshape {}
  end
  local along, shape = {}, source.shape
  for d = 1, x.ndim do along[d] = d == k and shape[k] or 1 end
  return x:scatter(k, index:reshape(along):expand(shape), source)
end

local function index_copy(who, x, ...)
  local dim, index, source = call_form.own("dim index source", who, ...)
  local k <const>, n <const> = check(who, x, dim, index, "source")
  arguments.tensor(source, who, "source")
  local shape = x.shape
  if x.ndim > 0 then shape[k] = n end
  local given <const> = source.ndim == 0 and n == 1 and x.ndim == 1 and source:reshape { 1 }
    or source
  local fits = given.ndim == #shape
  for d, size in ipairs(shape) do fits = fits and given.shape[d] == size end
  if not fits or source.dtype ~= x.dtype then
    errors.blame("%s: source must be [%s] %s: got %s %s; x is %s, index %s", who,
      table.concat(shape, ", "), x.dtype, errors.show_shape(source), source.dtype,
      errors.show_shape(x), errors.show_shape(index))
  end
  return copy(x, k, index, given)
end

local function index_fill(who, x, ...)
  local dim, index, value = call_form.own("dim index value", who, ...)
  local k <const> = check(who, x, dim, index, "value")
  local fill = value
  if not c.is_tensor(value) then
    fill = c.tensor(config.argument(value, "number", who, "value"), { dtype = x.dtype,
      device = x.device })
  elseif value.ndim > 0 then
    errors.blame("%s: value must be a number or a tensor []: got %s", who,
      errors.show_shape(value))
  end
  local along = {}
  for d = 1, x.ndim do along[d] = d == k and x.shape[k] or 1 end
  local chosen <const> = c.zeros({ x.shape[k] or 1 }, { dtype = "u8", device = x.device })
    :scatter(1, index:reshape { -1 }, 1):ne(0):reshape(along)
  return c.where(chosen, fill:to(x.dtype), x)
end

--- x with the positions of a dim in `index` replaced by those of `source`.
---@param x Tensor [..., M, ...] -> the same
---@param dim integer
---@param index Tensor [N], integers
---@param source Tensor [..., N, ...]
function indexing.index_copy(x, dim, index, source)
  return (index_copy("index_copy", x, dim, index, source))
end

--- index_copy in place.
function indexing.index_copy_(x, dim, index, source)
  return x:copy_(index_copy("index_copy_", x, dim, index, source))
end

--- x with the positions of a dim in `index` [N] set to `value`, a number or a scalar tensor.
function indexing.index_fill(x, dim, index, value)
  return (index_fill("index_fill", x, dim, index, value))
end

--- index_fill in place.
function indexing.index_fill_(x, dim, index, value)
  return x:copy_(index_fill("index_fill_", x, dim, index, value))
end

local function index_put(who, x, indices, values, accumulate)
  arguments.tensor(x, who, "x")
  arguments.tensor(values, who, "values")
  if type(indices) ~= "table" or #indices == 0 or #indices > x.ndim then
    errors.blame("%s: indices must be a list of 1 to %d tensors: got %s", who, x.ndim,
      errors.show(indices))
  end
  local list, dims = { x, values }, {}
  for k, index in ipairs(indices) do
    arguments.tensor(index, who, ("element %d of indices"):format(k))
    list[#list + 1], dims[k] = index, k
  end
  return operation("index_put", who)(list, { dims = dims, accumulate = accumulate or false })
end

--- x with the elements selected by `indices`, a tensor for each of the first dims, replaced by
--- `values`, or, with `accumulate`, increased by them.
function indexing.index_put(x, indices, values, accumulate)
  return (index_put("index_put", x, indices, values, accumulate))
end

--- index_put in place.
function indexing.index_put_(x, indices, values, accumulate)
  return x:copy_(index_put("index_put_", x, indices, values, accumulate))
end

-- The index as a list, what is negative counted from the end of n elements.
local function flat_index(index, n)
  local at <const> = index:reshape { -1 }
  return c.where(at:lt(0), at + n, at)
end

--- The elements at flat row-major indices `index`; negative ones count from the end.
---@param x Tensor
---@param index Tensor of integers -> its shape
function indexing.take(x, index)
  arguments.tensor(x, "take", "x")
  arguments.tensor(index, "take", "index")
  return x:reshape { -1 }:gather(1, flat_index(index, x:numel())):reshape(index.shape)
end

local function put(who, x, index, source, accumulate)
  arguments.tensor(x, who, "x")
  arguments.tensor(index, who, "index")
  arguments.tensor(source, who, "source")
  if index:numel() ~= source:numel() then
    errors.blame("%s: index %s and source %s have not as many elements", who,
      errors.show_shape(index), errors.show_shape(source))
  end
  local flat <const>, at <const> = x:reshape { -1 }, flat_index(index, x:numel())
  local values <const> = source:reshape { -1 }
  local y <const> = accumulate and flat:index_add(1, at, values) or flat:scatter(1, at, values)
  return y:reshape(x.shape)
end

--- x with the elements at flat row-major indices `index` replaced by those of `source`, or, with
--- `accumulate`, increased by them.
function indexing.put(x, index, source, accumulate)
  return (put("put", x, index, source, accumulate))
end

--- put in place.
function indexing.put_(x, index, source, accumulate)
  return x:copy_(put("put_", x, index, source, accumulate))
end

--- x with position `index` of a dim replaced by `source`, which lacks this dim.
function indexing.select_scatter(x, source, dim, index)
  arguments.tensor(x, "select_scatter", "x")
  arguments.tensor(source, "select_scatter", "source")
  local y <const> = x:clone()
  local o <const> = config.arguments("select_scatter", SELECT, dim, index)
  local part <const> = y:select(o.dim, o.index)
  if errors.show_shape(part) ~= errors.show_shape(source) then
    errors.blame("select_scatter: source must be %s: got %s", errors.show_shape(part),
      errors.show_shape(source))
  end
  part:copy_(source)
  return y
end

--- x with the elements of x:slice(dim, from, to, step) replaced by `source`.
function indexing.slice_scatter(x, source, ...)
  arguments.tensor(x, "slice_scatter", "x")
  arguments.tensor(source, "slice_scatter", "source")
  local y <const> = x:clone()
  y:slice(config.arguments("slice_scatter", SLICE, ...)):copy_(source)
  return y
end

--- x with the diagonal that x:diagonal(offset, dim1, dim2) gives replaced by `source`.
function indexing.diagonal_scatter(x, source, offset, dim1, dim2)
  arguments.tensor(x, "diagonal_scatter", "x")
  arguments.tensor(source, "diagonal_scatter", "source")
  local o <const> = config.arguments("diagonal_scatter", DIAGONAL, offset, dim1, dim2)
  local y <const> = x:clone()
  local part <const> = y:diagonal(o.offset, o.dim1, o.dim2)
  if errors.show_shape(part) ~= errors.show_shape(source) then
    errors.blame("diagonal_scatter: source must be %s: got %s", errors.show_shape(part),
      errors.show_shape(source))
  end
  part:copy_(source)
  return y
end

--- Indices of the nonzero elements, the same as nonzero.
---@param x Tensor -> [N, D]
function indexing.argwhere(x)
  arguments.tensor(x, "argwhere", "x")
  return x:nonzero()
end

--- nonzero with a fixed number of rows: truncated to `size`, or padded with `fill_value`.
---@param x Tensor -> [size, D]
function indexing.nonzero_static(x, size, fill_value)
  arguments.tensor(x, "nonzero_static", "x")
  local o <const> = config.arguments("nonzero_static", STATIC, size, fill_value)
  local all <const> = x:nonzero()
  local n <const> = math.min(o.size, all.shape[1])
  local rest <const> = c.full({ o.size - n, all.shape[2] }, o.fill_value, { dtype = all.dtype,
    device = x.device })
  return c.cat({ all:narrow(1, 1, n), rest }, 1)
end

return indexing
