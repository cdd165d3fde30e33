-- stdlib/ops/arrangement.lua: elements in another shape or order, by PyTorch's short names:
-- lt.unflatten, lt.ravel, lt.fliplr, lt.diag_embed, lt.atleast_1d, lt.hsplit, lt.unravel_index, ...

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local arrangement = {}

local UNFLATTEN <const> = config.signature {
  { "dim", type = "integer", required = true },
  { "sizes", type = "table", required = true, doc = "sizes of the new dims; one may be -1" },
}
local DIAG_EMBED <const> = config.signature {
  { "offset", type = "integer", default = 0, doc = "above 0: so many dims above the diagonal" },
  { "dim1", type = "integer", default = -2 }, { "dim2", type = "integer", default = -1 },
}
--- Splits a dim of x into `sizes`, one of which may be -1.
---@param x Tensor [..., N, ...] -> [..., sizes, ...]
function arrangement.unflatten(x, dim, sizes)
  arguments.tensor(x, "unflatten", "x")
  local o <const> = config.arguments("unflatten", UNFLATTEN, dim, sizes)
  local k <const> = arguments.dim(o.dim, x.ndim, "unflatten")
  if #o.sizes == 0 then errors.blame "unflatten: sizes is an empty list" end
  local known, shape = 1, { table.unpack(x.shape, 1, k - 1) }
  for _, size in ipairs(o.sizes) do
    if size ~= -1 then known = known * size end
    shape[#shape + 1] = size
  end
  for i, size in ipairs(shape) do
    if i >= k and size == -1 and known > 0 then shape[i] = x.shape[k] // known end
  end
  local n = 1
  for i = k, #shape do n = n * shape[i] end
  if n ~= x.shape[k] then
    errors.blame("unflatten: sizes {%s} do not make the %d of dim %d: x is %s",
      table.concat(o.sizes, ", "), x.shape[k], k, errors.show_shape(x))
  end
  table.move(x.shape, k + 1, x.ndim, #shape + 1, shape)
  return x:reshape(shape)
end

--- All elements as a vector [N].
function arrangement.ravel(x)
  arguments.tensor(x, "ravel", "x")
  return x:reshape { -1 }
end

--- Reverses dim 2 (left/right).
function arrangement.fliplr(x)
  arguments.tensor(x, "fliplr", "x")
  return x:flip(arguments.dim(2, x.ndim, "fliplr"))
end

--- Reverses dim 1 (up/down).
function arrangement.flipud(x)
  arguments.tensor(x, "flipud", "x")
  if x.ndim == 0 then errors.blame "flipud: x must have a dim: got []" end
  return x:flip(1)
end

--- Matrices with the last dim of x on a diagonal, and zeros elsewhere.
---@param x Tensor [..., N] -> [..., N + |offset|, N + |offset|]
function arrangement.diag_embed(x, offset, dim1, dim2)
  arguments.tensor(x, "diag_embed", "x")
  local o <const> = config.arguments("diag_embed", DIAG_EMBED, offset, dim1, dim2)
  if x.ndim == 0 then errors.blame "diag_embed: x must have a dim: got []" end
  local n <const>, ndim <const> = x.shape[x.ndim], x.ndim + 1
  local first <const> = arguments.dim(o.dim1, ndim, "diag_embed")
  local second <const> = arguments.dim(o.dim2, ndim, "diag_embed")
  if first == second then errors.blame("diag_embed: dim1 and dim2 are both %d", first) end
  local above <const>, below <const> = math.max(o.offset, 0), math.max(-o.offset, 0)
  -- Each element first in a row of its own, then moved to its column: [..., N, N + |offset|].
  local size <const> = n + above + below
  local eye <const> = c.eye(n, n, { device = x.device }):to(x.dtype)
  local rows <const> = x:unsqueeze(-1) * eye
  local y = rows:pad { above, below, below, above }
  if size == 0 then y = x:unsqueeze(-1) * eye end
  return y:movedim({ ndim - 1, ndim }, { first, second })
end

--- A matrix with the flattened elements of x on a diagonal.
function arrangement.diagflat(x, offset)
  arguments.tensor(x, "diagflat", "x")
  return x:reshape { -1 }:diag(offset or 0)
end

--- Converts flat row-major indices, from 0, to indices, one tensor per dim.
function arrangement.unravel_index(index, shape)
  arguments.tensor(index, "unravel_index", "index")
  if type(shape) ~= "table" or #shape == 0 then
    errors.blame("unravel_index: shape must be a list: got %s", errors.show(shape))
  end
  local list, left = {}, index
  for k = #shape, 1, -1 do
    list[k] = left % shape[k]
    left = left:floor_divide(shape[k])
  end
  return list
end

--- x with at least one dim.
function arrangement.atleast_1d(x)
  arguments.tensor(x, "atleast_1d", "x")
  return x.ndim == 0 and x:reshape { 1 } or x
end

--- x with at least two dims: a vector becomes a row.
function arrangement.atleast_2d(x)
  arguments.tensor(x, "atleast_2d", "x")
  return x.ndim < 2 and arrangement.atleast_1d(x):unsqueeze(1) or x
end

--- x with at least three dims: [N] becomes [1, N, 1], [M, N] becomes [M, N, 1].
function arrangement.atleast_3d(x)
  arguments.tensor(x, "atleast_3d", "x")
  return x.ndim < 3 and arrangement.atleast_2d(x):unsqueeze(3) or x
end

-- Parts along a dim: so many equal ones, or those that end before each position of a list.
local function splitter(who, least, dim_of)
  return function(x, parts)
    arguments.tensor(x, who, "x")
    if x.ndim < least then
      errors.blame("%s: x needs %d dims: got %s", who, least, errors.show_shape(x))
    end
    local dim <const> = dim_of(x)
    if math.type(parts) == "integer" and (parts < 1 or x.shape[dim] % parts ~= 0) then
      errors.blame("%s: %d equal parts of %d: x is %s", who, parts, x.shape[dim],
        errors.show_shape(x))
    end
    return x:tensor_split(parts, dim)
  end
end

local hsplit <const> = splitter("hsplit", 1, function(x) return x.ndim == 1 and 1 or 2 end)
local vsplit <const> = splitter("vsplit", 2, function() return 1 end)
local dsplit <const> = splitter("dsplit", 3, function() return 3 end)

--- Splits x into `parts` equal parts along dim 2 (a vector along dim 1), or at the positions of a
--- list.
function arrangement.hsplit(x, parts) return hsplit(x, parts) end

--- The same along dim 1.
function arrangement.vsplit(x, parts) return vsplit(x, parts) end

--- The same along dim 3.
function arrangement.dsplit(x, parts) return dsplit(x, parts) end

return arrangement
