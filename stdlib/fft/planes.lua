-- stdlib/fft/planes.lua: transforms along two dims, one after the other.

local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local transforms = require "ltrain.fft.transforms"

local planes = {}

local PLANE <const> = {
  s = { type = "table", doc = "the two lengths: x is cut, or filled with zeros" },
  dims = { type = "table", default = { -2, -1 },
    doc = "the two dims; that of the pairs does not count" },
  norm = { type = "string", default = "backward", choices = { "backward", "ortho", "forward" },
    doc = "as of fft" },
}

-- The options of each transform.
local function both(o, where)
  if #o.dims ~= 2 or (o.s and #o.s ~= 2) then
    errors.blame("%s: two dims and two lengths are needed", where)
  end
  local function of(k) return { n = o.s and o.s[k], dim = o.dims[k], norm = o.norm } end
  return of(1), of(2)
end

--- fft of the complex numbers x [..., M, N, 2] along both dims.
function planes.fft2(x, options)
  local first, second = both(config.check(options, PLANE, "fft.fft2"), "fft.fft2")
  return transforms.fft(transforms.fft(x, second), first)
end

--- The inverse of fft2.
function planes.ifft2(x, options)
  local first, second = both(config.check(options, PLANE, "fft.ifft2"), "fft.ifft2")
  return transforms.ifft(transforms.ifft(x, second), first)
end

--- rfft of the real numbers x [..., M, N] along the second of the dims, then fft along the first.
function planes.rfft2(x, options)
  local first, second = both(config.check(options, PLANE, "fft.rfft2"), "fft.rfft2")
  return transforms.fft(transforms.rfft(x, second), first)
end

--- The inverse of rfft2.
function planes.irfft2(x, options)
  local first, second = both(config.check(options, PLANE, "fft.irfft2"), "fft.irfft2")
  return transforms.irfft(transforms.ifft(x, first), second)
end

return planes
