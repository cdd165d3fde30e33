-- stdlib/fft/frequencies.lua: fftfreq, rfftfreq, fftshift and ifftshift: the frequencies of a
-- transform's bins, and their order.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local frequencies = {}

local SAMPLES <const> = {
  d = { type = "number", default = 1, doc = "the time between two samples" },
  dtype = { type = "string", doc = "by default f32" },
  device = { type = "string", doc = "by default the CPU" },
}

local function counted(first, last, n, o)
  local options = { dtype = o.dtype or "f32", device = o.device }
  return c.arange(first, last, options) * (1 / (n * o.d))
end

--- The frequencies of fft of n samples: 0, 1, ..., then the negative ones up to -1, each divided by
--- n d.
function frequencies.fftfreq(n, options)
  local o = config.check(options, SAMPLES, "fft.fftfreq")
  n = config.argument(n, "integer", "fft.fftfreq", "n", { min = 1 })
  local positive = counted(0, (n - 1) // 2 + 1, n, o)
  if n == 1 then return positive end
  return c.cat({ positive, counted(-(n // 2), 0, n, o) }, 1)
end

--- The frequencies of rfft of n samples: 0, 1, ..., n // 2, each divided by n d.
function frequencies.rfftfreq(n, options)
  local o = config.check(options, SAMPLES, "fft.rfftfreq")
  n = config.argument(n, "integer", "fft.rfftfreq", "n", { min = 1 })
  return counted(0, n // 2 + 1, n, o)
end

local DIMS <const> = {
  dims = { type = "integer|table", doc = "the dims to shift; by default all" },
}

local function shifted(x, o, where, by)
  if not c.is_tensor(x) then errors.blame("%s: needs a tensor, got %s", where, errors.show(x)) end
  local dims, shifts = o.dims, {}
  if type(dims) == "number" then dims = { dims } end
  if not dims then
    dims = {}
    for k = 1, x.ndim do dims[k] = k end
  end
  for k, dim in ipairs(dims) do shifts[k] = by(x.shape[dim < 0 and dim + x.ndim + 1 or dim]) end
  return x:roll(shifts, dims)
end

--- Moves frequency 0 to the middle of the dims, negative frequencies before it. For complex numbers
--- `dims` must not include the dim of the pairs.
function frequencies.fftshift(x, options)
  local o = config.check(options, DIMS, "fft.fftshift")
  return shifted(x, o, "fft.fftshift", function(n) return n // 2 end)
end

--- The inverse of fftshift.
function frequencies.ifftshift(x, options)
  local o = config.check(options, DIMS, "fft.ifftshift")
  return shifted(x, o, "fft.ifftshift", function(n) return (n + 1) // 2 end)
end

return frequencies
