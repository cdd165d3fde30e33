-- stdlib/fft/transforms_1d.lua: Fourier transforms over one dim.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"

local transforms_1d = {}

local ALONG <const> = {
  n = { type = "integer", min = 1, doc = "the length: x is truncated or zero-padded" },
  dim = { type = "integer", default = -1, doc = "the dim to transform; the dim of complex pairs "
    .. "does not count" },
  norm = { type = "string", default = "backward", choices = { "backward", "ortho", "forward" },
    doc = "which direction divides by n; 'ortho': both, by its square root" },
}

-- What the result of n numbers is multiplied with.
local function scale_of(norm, n, inverse)
  if norm == "ortho" then return 1 / math.sqrt(n) end
  return (norm == "backward") == inverse and 1 / n or 1
end

-- x, its dim from 1, and whether it is in f32 or f64; of pairs the last dim does not count.
local function read(x, o, where, pairs_last)
  if not c.is_tensor(x) then errors.blame("%s: needs a tensor, got %s", where, errors.show(x)) end
  if x.dtype ~= "f32" and x.dtype ~= "f64" then
    if is_float(x.dtype) then
      errors.blame("%s: needs f32 or f64, got %s; write x:to('f32')", where, x.dtype)
    end
    x = x:to "f32"
  end
  if pairs_last and (x.ndim < 2 or x.shape[x.ndim] ~= 2) then
    errors.blame("%s: needs [.., N, 2], real and imaginary parts in the last dim, got %s", where,
      errors.show_shape(x))
  end
  local n = x.ndim - (pairs_last and 1 or 0)
  local dim = o.dim < 0 and o.dim + n + 1 or o.dim
  if dim < 1 or dim > n then
    errors.blame("%s: dim %d is out of 1..%d of %s", where, o.dim, n, errors.show_shape(x))
  end
  return x, dim
end

-- x with `n` positions along a dim.
local function fitted(x, dim, n)
  local have = x.shape[dim]
  if n == have then return x end
  if n < have then return x:narrow(dim, 1, n) end
  local shape = x.shape
  shape[dim] = n - have
  return c.cat({ x, c.zeros(shape, { dtype = x.dtype, device = x.device }) }, dim)
end

-- The dim goes to the end of those that count, and what was made of it back. `pairs_after`: x, or
-- what is made of it, has pairs behind it.
local function along(x, dim, before, after, transform)
  local last = before and x.ndim - 1 or x.ndim
  local y = transform(dim == last and x or x:movedim(dim, last))
  if dim == last then return y end
  return y:movedim(after and y.ndim - 1 or y.ndim, dim)
end

local function complex(x, o, inverse, where)
  local dim
  x, dim = read(x, o, where, true)
  x = fitted(x, dim, o.n or x.shape[dim])
  local args = { inverse = inverse, scale = scale_of(o.norm, x.shape[dim], inverse) }
  return along(x, dim, true, true, function(y) return c.fft.complex(y, args) end)
end

local function conjugate(x)
  return x * c.tensor({ 1, -1 }, { dtype = x.dtype, device = x.device })
end

local function real(x, o, where)
  local dim
  x, dim = read(x, o, where, false)
  x = fitted(x, dim, o.n or x.shape[dim])
  local args = { scale = scale_of(o.norm, x.shape[dim], false) }
  return along(x, dim, false, true, function(y) return c.fft.real(y, args) end)
end

local function real_inverse(x, o, where, is_conjugate)
  local dim
  x, dim = read(x, o, where, true)
  if is_conjugate then x = conjugate(x) end
  local n = o.n or 2 * (x.shape[dim] - 1)
  if n < 1 then errors.blame("%s: n must be at least 1: got %d", where, n) end
  x = fitted(x, dim, n // 2 + 1)
  local args = { n = n, scale = scale_of(o.norm, n, true) }
  return along(x, dim, true, false, function(y) return c.fft.real_inverse(y, args) end)
end

--- The discrete Fourier transform of complex numbers x [..., N, 2]: sums of x e^(-2 pi i j k / N).
function transforms_1d.fft(x, options)
  return complex(x, config.check(options, ALONG, "fft.fft"), false, "fft.fft")
end

--- The inverse of fft.
function transforms_1d.ifft(x, options)
  return complex(x, config.check(options, ALONG, "fft.ifft"), true, "fft.ifft")
end

--- The first half [..., N // 2 + 1, 2] of the transform of real numbers x [..., N]; the rest are
--- its conjugates.
function transforms_1d.rfft(x, options)
  return (real(x, config.check(options, ALONG, "fft.rfft"), "fft.rfft"))
end

--- The inverse of rfft: real numbers [..., n] from half of the spectrum, x [..., n // 2 + 1, 2]; n
--- is even by default.
function transforms_1d.irfft(x, options)
  return (real_inverse(x, config.check(options, ALONG, "fft.irfft"), "fft.irfft"))
end

-- A Hermitian transform is a real one in the other direction, which divides where that does not.
local OTHER <const> = { backward = "forward", forward = "backward", ortho = "ortho" }
local function turned(options, where)
  local o = config.check(options, ALONG, where)
  o.norm = OTHER[o.norm]
  return o
end

--- The transform, real numbers [..., n], of a Hermitian-symmetric signal given by its first half x
--- [..., n // 2 + 1, 2]; n is even by default.
function transforms_1d.hfft(x, options)
  local y <const> = real_inverse(x, turned(options, "fft.hfft"), "fft.hfft", true)
  return y
end

--- The inverse of hfft: [..., N // 2 + 1, 2] of the real numbers x [..., N].
function transforms_1d.ihfft(x, options)
  local y <const> = real(x, turned(options, "fft.ihfft"), "fft.ihfft")
  return conjugate(y)
end

return transforms_1d
