-- spec/loggers/messages.lua: reads messages of protocol buffers, for specs of what writes them.
local messages = {}

--- The fields of a message, in order: { number, value }.
function messages.fields(text)
  local list, at = {}, 1
  local function varint()
    local value, shift = 0, 0
    repeat
      local byte = text:byte(at)
      value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
    until byte < 128
    return value
  end
  while at <= #text do
    local key = varint()
    local value
    if key & 7 == 0 then
      value = varint()
    elseif key & 7 == 2 then
      local size = varint()
      value, at = text:sub(at, at + size - 1), at + size
    else
      value, at = string.unpack(key & 7 == 1 and "<d" or "<f", text, at)
    end
    list[#list + 1] = { key >> 3, value }
  end
  return list
end

--- The value of the first field of a number.
function messages.find(list, number)
  for _, field in ipairs(list) do
    if field[1] == number then return field[2] end
  end
end

--- The values of all fields of a number.
function messages.all(list, number)
  local found = {}
  for _, field in ipairs(list) do
    if field[1] == number then found[#found + 1] = field[2] end
  end
  return found
end

return messages
