-- stdlib/fft/transforms_nd.lua: Fourier transforms over several dims, one dim after the other.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local transforms_1d = require "ltrain.fft.transforms_1d"

local transforms_nd = {}

local function options_of(dims, default)
  return {
    s = { type = "table", doc = "their lengths: x is cut, or filled with zeros" },
    dims = { type = "table", default = default, doc = dims .. "; that of pairs does not count" },
    norm = { type = "string", default = "backward", choices = { "backward", "ortho", "forward" },
      doc = "as of fft" },
  }
end

local PLANE <const> = options_of("the dims", { -2, -1 })
local SEVERAL <const> = options_of "by default the last ones, as many as `s` has, or all"

-- The dims of x in which pairs do not count, from 1, and the options of the transform of each.
local function each(x, o, where, has_pairs)
  if not c.is_tensor(x) then errors.blame("%s: needs a tensor, got %s", where, errors.show(x)) end
  local n <const> = x.ndim - (has_pairs and 1 or 0)
  local dims = o.dims
  if not dims then
    dims = {}
    for k = n - (o.s and #o.s or n) + 1, n do dims[#dims + 1] = k end
  end
  if #dims == 0 or o.s and #o.s ~= #dims then
    errors.blame("%s: needs a dim, and a length for each: got %d dims%s", where, #dims,
      o.s and (" and %d lengths"):format(#o.s) or "")
  end
  local list, seen = {}, {}
  for k, dim in ipairs(dims) do
    config.argument(dim, "integer", where, "a dim")
    local place <const> = dim < 0 and dim + n + 1 or dim
    if place < 1 or place > n then
      errors.blame("%s: dim %s is out of 1..%d of %s", where, dim, n, errors.show_shape(x))
    end
    if seen[place] then errors.blame("%s: dim %d is given twice", where, dim) end
    seen[place] = true
    local length <const> = o.s and o.s[k]
    list[k] = { n = length ~= -1 and length or nil, dim = place, norm = o.norm }
  end
  return list
end

-- x transformed along each dim of the list from position `last` on down.
local function along(x, list, last, transform)
  for k = last, 1, -1 do x = transform(x, list[k]) end
  return x
end

-- How each kind goes: along the last dim, and along the others before (`others_first`) or after it.
local KINDS <const> = {
  fft = { transforms_1d.fft, transforms_1d.fft, has_pairs = true },
  ifft = { transforms_1d.ifft, transforms_1d.ifft, has_pairs = true },
  rfft = { transforms_1d.rfft, transforms_1d.fft },
  irfft = { transforms_1d.irfft, transforms_1d.ifft, has_pairs = true, others_first = true },
  hfft = { transforms_1d.hfft, transforms_1d.fft, has_pairs = true, others_first = true },
  ihfft = { transforms_1d.ihfft, transforms_1d.ifft },
}

local function transformed(x, o, kind, where)
  local row <const> = KINDS[kind]
  local list <const> = each(x, o, where, row.has_pairs)
  local n <const> = #list
  if row.others_first then return row[1](along(x, list, n - 1, row[2]), list[n]) end
  return along(row[1](x, list[n]), list, n - 1, row[2])
end

local function plane(x, given, kind)
  local where <const> = "fft." .. kind .. "2"
  return transformed(x, config.check(given, PLANE, where), kind, where)
end

local function several(x, given, kind)
  local where <const> = "fft." .. kind .. "n"
  return transformed(x, config.check(given, SEVERAL, where), kind, where)
end

--- fft of the complex numbers x [..., M, N, 2] along both dims.
function transforms_nd.fft2(x, options) return (plane(x, options, "fft")) end

--- The inverse of fft2.
function transforms_nd.ifft2(x, options) return (plane(x, options, "ifft")) end

--- rfft of the real numbers x [..., M, N] along the second of the dims, then fft along the first.
function transforms_nd.rfft2(x, options) return (plane(x, options, "rfft")) end

--- The inverse of rfft2.
function transforms_nd.irfft2(x, options) return (plane(x, options, "irfft")) end

--- fft of the complex numbers x [..., M, N, 2] along the first dim, then hfft along the second.
function transforms_nd.hfft2(x, options) return (plane(x, options, "hfft")) end

--- The inverse of hfft2.
function transforms_nd.ihfft2(x, options) return (plane(x, options, "ihfft")) end

--- fft of the complex numbers x [..., 2] along several dims.
function transforms_nd.fftn(x, options) return (several(x, options, "fft")) end

--- The inverse of fftn.
function transforms_nd.ifftn(x, options) return (several(x, options, "ifft")) end

--- rfft of the real numbers x along the last of the dims, then fft along the others.
function transforms_nd.rfftn(x, options) return (several(x, options, "rfft")) end

--- The inverse of rfftn.
function transforms_nd.irfftn(x, options) return (several(x, options, "irfft")) end

--- fft of the complex numbers x [..., 2] along all dims but the last, then hfft along that.
function transforms_nd.hfftn(x, options) return (several(x, options, "hfft")) end

--- The inverse of hfftn.
function transforms_nd.ihfftn(x, options) return (several(x, options, "ihfft")) end

return transforms_nd
