--- stdlib/core/protobuf.lua: fields of messages in the wire format of protocol buffers.
local protobuf = {}

-- Wire types of a field.
local VARINT <const>, FIXED64 <const>, BYTES <const>, FIXED32 <const> = 0, 1, 2, 5

-- Seven bits a byte, the lowest first; of negative numbers all 64 bits.
local function varint(value)
  local bytes = {}
  while math.ult(127, value) do
    bytes[#bytes + 1] = string.char(value & 127 | 128)
    value = value >> 7
  end
  bytes[#bytes + 1] = string.char(value)
  return table.concat(bytes)
end

local function tag(number, wire) return varint(number << 3 | wire) end

--- A whole number, or a boolean as 0 or 1.
function protobuf.integer(number, value)
  if type(value) == "boolean" then value = value and 1 or 0 end
  return tag(number, VARINT) .. varint(value)
end

function protobuf.double(number, value)
  return tag(number, FIXED64) .. string.pack("<d", value)
end

function protobuf.float(number, value)
  return tag(number, FIXED32) .. string.pack("<f", value)
end

--- A text, or a message.
function protobuf.bytes(number, text) return tag(number, BYTES) .. varint(#text) .. text end

--- A list of doubles, packed.
function protobuf.doubles(number, list)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = string.pack("<d", value) end
  return protobuf.bytes(number, table.concat(parts))
end

return protobuf
