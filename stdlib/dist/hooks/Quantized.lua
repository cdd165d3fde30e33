--- stdlib/dist/hooks/Quantized.lua: sends gradients in 8 bits an element, or in one, the sign
--- (Seide et al. 2014), with a scale for each chunk of elements.
--
-- Sums of quantized numbers need more bits, so that an all_reduce cannot be used: each rank gets
-- its part of all ranks' gradients (all_to_all), adds them up in the order of the ranks, quantizes
-- the sums and sends them to all (all_gather). What the second rounding leaves is that rank's
-- residual too.
local Hook = require "ltrain.dist.hooks.Hook"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"

local Quantized = Hook:extend("Quantized")

-- Codes: encode(x [chunks, chunk]) returns codes [chunks, bytes] and scales [chunks, 1]; decode
-- (codes, scales) returns [chunks, chunk]. A chunk with an element that is not finite gets a scale
-- that is not, and is not finite on all ranks.

local INT8 <const> = {}

-- Numbers from -127 to 127 times the scale, rounded to the nearest.
function INT8.encode(x)
  local scales = x:abs():amax { dim = 2, keepdim = true } / 127
  return (x / scales):round():clamp { min = -127, max = 127 }:to "i8", scales
end

function INT8.decode(codes, scales) return codes:to(scales.dtype) * scales end

local SIGN <const> = {}
local BITS <const> = 8

-- The signs as bits, 8 in a byte, the first the lowest; the scale is the mean magnitude, which
-- leaves the smallest error.
function SIGN.encode(x)
  local chunks, chunk = x.shape[1], x.shape[2]
  local places = {}
  for bit = 1, BITS do places[bit] = 2 ^ (bit - 1) end
  local weights = c.tensor(places, { dtype = x.dtype, device = x.device })
  local bits = x:ge(0):to(x.dtype):reshape { chunks * chunk // BITS, BITS }
  return (bits * weights):sum(2):to "u8":reshape { chunks, chunk // BITS },
    x:abs():mean { dim = 2, keepdim = true }
end

-- The signs [256, 8] of each byte.
local function table_of(dtype, device)
  local rows = {}
  for byte = 0, 255 do
    rows[byte + 1] = {}
    for bit = 1, BITS do rows[byte + 1][bit] = (byte >> (bit - 1)) % 2 == 1 and 1 or -1 end
  end
  return c.tensor(rows, { dtype = dtype, device = device })
end

local tables = {} -- by dtype and device

function SIGN.decode(codes, scales)
  local key = scales.dtype .. " " .. scales.device
  tables[key] = tables[key] or table_of(scales.dtype, scales.device)
  local signs = tables[key]:index_select(1, codes:to "i64":reshape { codes:numel() })
  return signs:reshape { codes.shape[1], codes.shape[2] * BITS } * scales
end

-- This rank's part of what all ranks send: [ranks * chunks of a part, ...] of each.
local function exchange(codes, scales, group)
  local options = { group = group, async = true }
  codes, scales = collectives.all_to_all(codes, options), collectives.all_to_all(scales, options)
  return codes:wait(), scales:wait()
end

local function gather(codes, scales, group)
  local options = { group = group, async = true, cat = true }
  codes, scales = collectives.all_gather(codes, options), collectives.all_gather(scales, options)
  return codes:wait(), scales:wait()
end

function Quantized:compress(x, _, group)
  local code, n, ranks = self.code, x:numel(), self.ranks_of(group)
  local chunks = (n + self.chunk * ranks - 1) // (self.chunk * ranks) -- of a part
  local own = c.zeros({ ranks * chunks * self.chunk }, { dtype = x.dtype, device = x.device })
  own:narrow(1, 1, n):copy_(x)
  own = own:reshape { ranks * chunks, self.chunk }
  local codes, scales = code.encode(own)
  local left = self.error_feedback and own:sub_(code.decode(codes, scales))
  local part = code.decode(exchange(codes, scales, group)):reshape { ranks, chunks, self.chunk }
    :sum(1)
  codes, scales = code.encode(part)
  if left then
    local mine = left:narrow(1, self.rank_in(group) * chunks + 1, chunks)
    mine:add_(part):sub_(code.decode(codes, scales))
  end
  local all = code.decode(gather(codes, scales, group))
  x:copy_(all:reshape { all:numel() }:narrow(1, 1, n))
  return left and left:reshape { left:numel() }:narrow(1, 1, n)
end

Quantized.options = Hook.rows {
  chunk = { type = "integer", default = 512, min = 8,
    check = function(value)
      if value % BITS ~= 0 then return ("must be a multiple of 8: got %d"):format(value) end
    end,
    doc = "number of elements with a scale, a multiple of 8" },
}

local Int8, Sign = Quantized:extend("Int8"), Quantized:extend("Sign")
Int8.name, Int8.code = "int8", INT8
Sign.name, Sign.code = "sign", SIGN

return { int8 = Int8, sign = Sign }
