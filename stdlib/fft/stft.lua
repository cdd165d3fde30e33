-- stdlib/fft/stft.lua: lt.stft, lt.istft: short-time Fourier transforms. B signals, T samples, L
-- windows, N = n_fft, F = N // 2 + 1 frequencies.
--
-- J. Allen, L. Rabiner, A Unified Approach to Short-Time Fourier Analysis and Synthesis, 1977; the
-- inverse is the least-squares one of D. Griffin and J. Lim, 1984.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"

local stft = {}

local function options_with(own)
  own.hop_length = { type = "integer", min = 1, doc = "distance between windows; by default "
    .. "n_fft // 4" }
  own.win_length = { type = "integer", min = 1, doc = "length of the window; by default n_fft" }
  own.window = { type = "tensor", doc = "its values; by default ones" }
  own.center = { type = "boolean", default = true,
    doc = "windows are centered on their samples: the signal is padded by n_fft // 2 on both "
      .. "sides" }
  own.normalized = { type = "boolean", default = false, doc = "divide by the square root of n_fft" }
  own.onesided = { type = "boolean", default = true, doc = "F frequencies instead of all N" }
  return own
end

local FORWARD <const> = options_with {
  pad_mode = { type = "string", default = "reflect",
    choices = { "reflect", "replicate", "constant", "circular" }, doc = "how it is padded" },
}

-- The window, with zeros around it up to n_fft.
local function window_of(x, n_fft, o, where)
  local length = o.win_length or n_fft
  if length > n_fft then
    errors.blame("%s: win_length %d is longer than n_fft = %d", where, length, n_fft)
  end
  local window = o.window or c.ones({ length }, { device = x.device })
  if window.ndim ~= 1 or window.shape[1] ~= length then
    errors.blame("%s: the window must have win_length = %d values: got %s", where, length,
      errors.show_shape(window))
  end
  window = window:to(x.dtype)
  local left = (n_fft - length) // 2
  if length == n_fft then return window end
  local made = { dtype = x.dtype, device = x.device }
  return c.cat({ c.zeros({ left }, made), window, c.zeros({ n_fft - length - left }, made) }, 1)
end

-- x [B, T] with `by` samples before and behind it.
local function padded(x, by, mode)
  local t = x.shape[2]
  if by == 0 then return x end
  if mode == "constant" then
    local zeros = c.zeros({ x.shape[1], by }, { dtype = x.dtype, device = x.device })
    return c.cat({ zeros, x, zeros }, 2)
  elseif mode == "replicate" then
    return c.cat({ x:narrow(2, 1, 1):expand(-1, by), x, x:narrow(2, t, 1):expand(-1, by) }, 2)
  elseif mode == "circular" then
    return c.cat({ x:narrow(2, t - by + 1, by), x, x:narrow(2, 1, by) }, 2)
  end
  return c.cat({ x:narrow(2, 2, by):flip { 2 }, x, x:narrow(2, t - by, by):flip { 2 } }, 2)
end

local function check(x, n_fft, where, dims)
  if not c.is_tensor(x) or not is_float(x.dtype) then
    errors.blame("%s: needs a floating tensor, got %s", where,
      c.is_tensor(x) and x.dtype or errors.show(x))
  end
  if x.ndim ~= dims and x.ndim ~= dims + 1 then
    errors.blame("%s: needs %s, got %s", where, dims == 1 and "[T] or [B, T]"
      or "[F, L, 2] or [B, F, L, 2]", errors.show_shape(x))
  end
  return config.argument(n_fft, "integer", where, "n_fft", { min = 1 })
end

--- The spectrogram [B..., F, L, 2], real and imaginary parts in the last dim, of signals x [T] or
--- [B, T]: rfft of windows of n_fft samples. PyTorch's with view_as_real.
---@param x Tensor [B..., T]
---@param n_fft integer
function stft.stft(x, n_fft, options)
  local where <const> = "stft"
  local o = config.check(options, FORWARD, where)
  n_fft = check(x, n_fft, where, 1)
  local signals = x.ndim == 1 and x:unsqueeze(1) or x
  local t = signals.shape[2]
  if o.center then
    local by = n_fft // 2
    if (o.pad_mode == "reflect" and by >= t) or (o.pad_mode == "circular" and by > t) then
      errors.blame("%s: %d samples cannot be continued by %d: pad_mode = 'constant'", where, t, by)
    end
    signals = padded(signals, by, o.pad_mode)
  end
  if signals.shape[2] < n_fft then
    errors.blame("%s: n_fft = %d is longer than the signal of %d samples", where, n_fft,
      signals.shape[2])
  end
  local windows = signals:unfold(2, n_fft, o.hop_length or math.max(n_fft // 4, 1))
  windows = windows * window_of(x, n_fft, o, where)
  local scale = { scale = o.normalized and 1 / math.sqrt(n_fft) or 1 }
  local y
  if o.onesided then
    y = c.fft.real(windows, scale)
  else
    y = c.fft.complex(c.stack({ windows, c.zeros_like(windows) }, -1), scale)
  end
  y = y:transpose(2, 3)
  return x.ndim == 1 and y:squeeze(1) or y
end

local INVERSE <const> = options_with {
  length = { type = "integer", min = 1, doc = "number of samples; by default those covered by "
    .. "windows" },
}

-- Windows [B, L, N] added up where they overlap: [B, T].
local function overlapped(windows, hop)
  local b, l, n = windows.shape[1], windows.shape[2], windows.shape[3]
  local t = n + hop * (l - 1)
  local y = windows:transpose(2, 3):col2im { output_size = { t, 1 }, kernel_size = { n, 1 },
    stride = { hop, 1 } }
  return y:reshape { b, t }
end

--- The signals [B..., T] of a spectrogram [B..., F, L, 2] of stft with the same options: by
--- overlap-add, divided by the sum of the squares of `window`.
---@param x Tensor [B..., F, L, 2]
---@param n_fft integer
function stft.istft(x, n_fft, options)
  local where <const> = "istft"
  local o = config.check(options, INVERSE, where)
  n_fft = check(x, n_fft, where, 3)
  local y = x.ndim == 3 and x:unsqueeze(1) or x
  local wanted = o.onesided and n_fft // 2 + 1 or n_fft
  if y.shape[2] ~= wanted or y.shape[4] ~= 2 or y.shape[3] == 0 then
    errors.blame("%s: n_fft = %d needs [.., %d, L, 2], got %s", where, n_fft, wanted,
      errors.show_shape(x))
  end
  local hop, window = o.hop_length or math.max(n_fft // 4, 1), window_of(x, n_fft, o, where)
  local scale = o.normalized and 1 / math.sqrt(n_fft) or 1 / n_fft
  y = y:transpose(2, 3)
  if o.onesided then
    y = c.fft.real_inverse(y, { n = n_fft, scale = scale })
  else
    y = c.fft.complex(y, { inverse = true, scale = scale }):select(-1, 1)
  end
  local squares = window:square():reshape { 1, 1, n_fft }:expand(1, y.shape[2], -1)
  local sum, weight = overlapped(y * window, hop), overlapped(squares, hop)
  local first, last = o.center and n_fft // 2 or 0, sum.shape[2]
  if o.length then
    last = math.min(last, first + o.length)
  elseif o.center then
    last = last - n_fft // 2
  end
  if last <= first then
    errors.blame("%s: nothing is left of %d samples without n_fft // 2 at both ends", where,
      sum.shape[2])
  end
  sum, weight = sum:narrow(2, first + 1, last - first), weight:narrow(2, first + 1, last - first)
  if weight:abs():amin():item() < 1e-11 then
    errors.blame("%s: the windows leave gaps of 0 (hop_length %d): they cannot be inverted", where,
      hop)
  end
  y = sum / weight
  if o.length and o.length > last - first then
    local rest = { y.shape[1], o.length - (last - first) }
    y = c.cat({ y, c.zeros(rest, { dtype = y.dtype, device = y.device }) }, 2)
  end
  return x.ndim == 3 and y:squeeze(1) or y
end

return stft
