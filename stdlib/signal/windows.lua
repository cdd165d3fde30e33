-- stdlib/signal/windows.lua: lt.signal.windows: windows of M samples, which weigh those of a signal
-- before its transform.
--
-- F. Harris, On the Use of Windows for Harmonic Analysis with the Discrete Fourier Transform, 1978.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local cosine_sum = require "ltrain.fft.cosine_sum"
local errors = require "ltrain.core.errors"

local windows = {}

-- The options of a window: its own, and those of all.
local function described(own)
  local spec = {
    sym = { type = "boolean", default = true,
      doc = "symmetric, for filters; false: periodic, for spectra" },
    dtype = { type = "string", default = "f32", choices = { "f32", "f64" } },
    device = { type = "string", doc = "the CPU if it is not given" },
  }
  for name, row in next, own or {} do spec[name] = row end
  return spec
end

local PLAIN <const> = described()

-- M and the options, checked.
local function checked(name, M, o, spec)
  local who <const> = "signal.windows." .. name
  return config.argument(M, "integer", who, "M", { min = 0 }), config.check(o, spec, who), who
end

-- f of the positions 0..M - 1 in f64, and of what a period has beyond the first of them; 1 alone.
local function of_positions(M, o, f)
  if M == 1 then return c.ones({ 1 }, { dtype = o.dtype, device = o.device }) end
  local k <const> = c.arange(0, M, { dtype = "f64", device = o.device })
  return f(k, o.sym and math.max(M - 1, 1) or M):to(o.dtype)
end

local function sum_of_cosines(name, M, o, a)
  M, o = checked(name, M, o, PLAIN)
  return cosine_sum(M, a, not o.sym, o)
end

--- The triangle 1 - |2 k / N - 1|, k = 0..M - 1; N is M - 1, or M if not `sym`, for all windows.
function windows.bartlett(M, options)
  local o
  M, o = checked("bartlett", M, options, PLAIN)
  return of_positions(M, o, function(k, N) return 1 - (k * (2 / N) - 1):abs() end)
end

--- 0.42 - 0.5 cos(2 pi k / N) + 0.08 cos(4 pi k / N).
function windows.blackman(M, options)
  return (sum_of_cosines("blackman", M, options, { 0.42, 0.5, 0.08 }))
end

--- Half a period of a sine: sin(pi (k + 0.5) / (N + 1)).
function windows.cosine(M, options)
  local o
  M, o = checked("cosine", M, options, PLAIN)
  return of_positions(M, o, function(k)
    return ((k + 0.5) * (math.pi / (o.sym and M or M + 1))):sin()
  end)
end

local EXPONENTIAL <const> = described {
  center = { type = "number", doc = "where it is 1, only if not `sym`; by default in the middle" },
  tau = { type = "number", default = 1, above = 0, doc = "over how many samples it falls by e" },
}

--- exp(-|k - center| / tau).
function windows.exponential(M, options)
  local o, who
  M, o, who = checked("exponential", M, options, EXPONENTIAL)
  if o.center and o.sym then
    errors.blame("%s: center = %s of a symmetric window, whose center is its middle: sym = false",
      who, o.center)
  end
  local center <const> = o.center or (o.sym and M - 1 or M) / 2
  return of_positions(M, o, function(k) return ((k - center):abs() / -o.tau):exp() end)
end

local GAUSSIAN <const> = described {
  std = { type = "number", default = 1, above = 0, doc = "its standard deviation in samples" },
}

--- exp(-((k - N / 2) / std)^2 / 2).
function windows.gaussian(M, options)
  local o
  M, o = checked("gaussian", M, options, GAUSSIAN)
  local center <const> = (o.sym and M - 1 or M) / 2
  return of_positions(M, o, function(k) return (((k - center) / o.std):square() / -2):exp() end)
end

local GENERAL_COSINE <const> = described {
  a = { type = "table", required = true, doc = "the weights of the cosines, a list" },
}

--- a[1] - a[2] cos(2 pi k / N) + a[3] cos(4 pi k / N) - ...
function windows.general_cosine(M, options)
  local o, who
  M, o, who = checked("general_cosine", M, options, GENERAL_COSINE)
  if #o.a == 0 then errors.blame("%s: a is empty: it is a list of weights", who) end
  return cosine_sum(M, o.a, not o.sym, o)
end

local GENERAL_HAMMING <const> = described {
  alpha = { type = "number", default = 0.54, doc = "the mean of a period" },
}

--- alpha - (1 - alpha) cos(2 pi k / N).
function windows.general_hamming(M, options)
  local o
  M, o = checked("general_hamming", M, options, GENERAL_HAMMING)
  return cosine_sum(M, { o.alpha, 1 - o.alpha }, not o.sym, o)
end

--- 0.54 - 0.46 cos(2 pi k / N).
function windows.hamming(M, options)
  return (sum_of_cosines("hamming", M, options, { 0.54, 0.46 }))
end

--- 0.5 - 0.5 cos(2 pi k / N).
function windows.hann(M, options) return (sum_of_cosines("hann", M, options, { 0.5, 0.5 })) end

local KAISER <const> = described {
  beta = { type = "number", default = 12, min = 0, doc = "how narrow it is" },
}

--- i0(beta sqrt(1 - (2 k / N - 1)^2)) / i0(beta).
function windows.kaiser(M, options)
  local o
  M, o = checked("kaiser", M, options, KAISER)
  return of_positions(M, o, function(k, N)
    local inside <const> = (1 - (k * (2 / N) - 1):square()):clamp { min = 0 }
    return (inside:sqrt() * o.beta):i0() / c.full({}, o.beta, { dtype = "f64",
      device = o.device }):i0()
  end)
end

--- A sum of four cosines: 0.3635819, 0.4891775, 0.1365995 and 0.0106411.
function windows.nuttall(M, options)
  return (sum_of_cosines("nuttall", M, options, { 0.3635819, 0.4891775, 0.1365995, 0.0106411 }))
end

return windows
