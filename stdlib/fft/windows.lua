-- stdlib/fft/windows.lua: lt.hann_window, lt.hamming_window: windows of raised cosines.
--
-- F. Harris, On the Use of Windows for Harmonic Analysis with the Discrete Fourier Transform, 1978.

local config = require "ltrain.core.config"
local cosine_sum = require "ltrain.fft.cosine_sum"

local windows = {}

local WINDOW <const> = {
  periodic = { type = "boolean", default = true,
    doc = "periodic, for spectra; false: symmetric, for filters" },
  dtype = { type = "string", default = "f32", doc = "f32 or f64" },
  device = { type = "string", doc = "by default the CPU" },
}

local function raised_cosine(n, o, level, where)
  n = config.argument(n, "integer", where, "window_length", { min = 0 })
  return cosine_sum(n, { level, 1 - level }, o.periodic, o)
end

--- The Hann window of n samples: 0.5 - 0.5 cos(2 pi k / n), k = 0..n - 1.
function windows.hann_window(n, options)
  return raised_cosine(n, config.check(options, WINDOW, "hann_window"), 0.5, "hann_window")
end

--- The Hamming window of n samples: 0.54 - 0.46 cos(2 pi k / n), k = 0..n - 1.
function windows.hamming_window(n, options)
  return raised_cosine(n, config.check(options, WINDOW, "hamming_window"), 0.54, "hamming_window")
end

return windows
