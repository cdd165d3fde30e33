--- stdlib/loggers/png.lua: a tensor as a PNG, for loggers.
--
-- The pixels are stored, not compressed: what a run shows is small, and it must not wait for it.
local c = require "ltrain.c"

local SIGNATURE <const> = "\137PNG\r\n\26\n"
local COLOURS <const> = { 0, 4, 2, 6 } -- the code of 1 (grey) to 4 (RGBA) channels
local BLOCK <const> = 65535 -- bytes of a stored block of deflate
local MODULUS <const> = 65521 -- of Adler-32

local function chunk(name, data)
  local crc = c.io.crc32(c.from_bytes(name .. data, "u8"))
  return string.pack(">I4", #data) .. name .. data .. string.pack(">I4", crc)
end

-- The checksum of bytes, a tensor [N].
local function adler(x)
  local n = #x
  local wide = x:to "i64"
  local a = (1 + wide:sum():item()) % MODULUS
  local b = (n + (wide * c.arange(n, 0, -1)):sum():item()) % MODULUS
  return string.pack(">I2I2", b, a)
end

-- A zlib stream of stored blocks.
local function stored(x)
  local text, parts = x:tobytes(), { "\x78\x01" }
  for at = 1, #text, BLOCK do
    local piece = text:sub(at, at + BLOCK - 1)
    local last = at + BLOCK > #text and 1 or 0
    parts[#parts + 1] = string.pack("<I1I2I2", last, #piece, ~#piece & 0xffff) .. piece
  end
  parts[#parts + 1] = adler(x)
  return table.concat(parts)
end

--- The bytes of a PNG with the pixels of a u8 tensor [C, H, W], C from 1 to 4.
return function(image)
  local _ <close> = c.no_grad()
  local channels, height, width = table.unpack(image.shape)
  local rows = image:permute { 2, 3, 1 }:reshape { height, width * channels }
  local filters = c.zeros(height, 1, { dtype = "u8" }) -- of each line: none
  local lines = c.cat({ filters, rows }, 2)
  local head = string.pack(">I4I4I1I1I1I1I1", width, height, 8, COLOURS[channels], 0, 0, 0)
  return SIGNATURE .. chunk("IHDR", head) .. chunk("IDAT", stored(lines:flatten()))
    .. chunk("IEND", "")
end
