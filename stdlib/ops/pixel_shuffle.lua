-- stdlib/ops/pixel_shuffle.lua: lt.pixel_shuffle, lt.pixel_unshuffle and lt.channel_shuffle:
-- channels into pixels and back, and channels in another order. B any dims, C channels, H height, W
-- width.

local arguments = require "ltrain.ops.arguments"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local pixel_shuffle = {}

-- Whose square is an integer.
local COUNT <const> = { min = 1, max = 0x7fffffff }

-- The leading dims, and the last three; raises where x is not an image.
local function split(x, who)
  arguments.tensor(x, who, "x")
  if x.ndim < 3 then
    errors.blame("%s: x must be [..., C, H, W]: got %s", who, errors.show_shape(x))
  end
  local n <const>, shape = x.ndim, x.shape
  return { table.unpack(shape, 1, n - 3) }, shape[n - 2], shape[n - 1], shape[n]
end

-- The leading dims and those given.
local function joined(lead, ...)
  local more <const> = { ... }
  return table.move(more, 1, #more, #lead + 1, { table.unpack(lead) })
end

-- x in `shape` with the dims after the leading ones in `order`, then in `result`.
local function rearranged(x, lead, shape, order, result)
  local dims = {}
  for k = 1, #lead do dims[k] = k end
  for k, dim in ipairs(order) do dims[#lead + k] = #lead + dim end
  return x:reshape(joined(lead, table.unpack(shape))):permute(dims):reshape(result)
end

--- Rearranges channels to pixels: x [..., C * r * r, H, W] to [..., C, H * r, W * r], r the
--- `upscale_factor`.
function pixel_shuffle.pixel_shuffle(x, upscale_factor)
  local who <const> = "pixel_shuffle"
  local r <const> = config.argument(upscale_factor, "integer", who, "upscale_factor", COUNT)
  local lead <const>, channels, h, w = split(x, who)
  if channels % (r * r) ~= 0 then
    errors.blame("%s: the channels of %s must be a multiple of %d", who, errors.show_shape(x),
      r * r)
  end
  local n <const> = channels // (r * r)
  local y <const> = rearranged(x, lead, { n, r, r, h, w }, { 1, 4, 2, 5, 3 },
    joined(lead, n, h * r, w * r))
  return y
end

--- Rearranges pixels to channels: x [..., C, H * r, W * r] to [..., C * r * r, H, W], r the
--- `downscale_factor`.
function pixel_shuffle.pixel_unshuffle(x, downscale_factor)
  local who <const> = "pixel_unshuffle"
  local r <const> = config.argument(downscale_factor, "integer", who, "downscale_factor",
    COUNT)
  local lead <const>, n, h, w = split(x, who)
  if h % r ~= 0 or w % r ~= 0 then
    errors.blame("%s: height and width of %s must be multiples of %d", who, errors.show_shape(x), r)
  end
  h, w = h // r, w // r
  local y <const> = rearranged(x, lead, { n, h, r, w, r }, { 1, 3, 5, 2, 4 },
    joined(lead, n * r * r, h, w))
  return y
end

--- Interleaves the channels of `groups` equal parts of x [N, C, ...]: the first of each, the second
--- of each, ...
function pixel_shuffle.channel_shuffle(x, groups)
  local who <const> = "channel_shuffle"
  arguments.tensor(x, who, "x")
  local n <const> = config.argument(groups, "integer", who, "groups", COUNT)
  if x.ndim < 3 or x.shape[2] % n ~= 0 then
    errors.blame("%s: x must be [N, C, ...] with a multiple of %d channels: got %s", who, n,
      errors.show_shape(x))
  end
  local shape <const> = x.shape
  local rest <const> = { table.unpack(shape, 3) }
  local y <const> = x:reshape(joined({ shape[1], n, shape[2] // n }, table.unpack(rest)))
    :transpose(2, 3):reshape(shape)
  return y
end

return pixel_shuffle
