--- stdlib/core/late_numbers.lua: logged values as Lua numbers, read some steps after the step that
--- made them.
--
-- Each value is copied as it is: on a device that records, a step that is logged is the program of
-- the others.
local c = require "ltrain.c"
local is_float = require "ltrain.core.is_float"

local late_numbers = {}

local READ <const> = { f32 = true, f64 = true, i64 = true, bool = true }

local function readback_of(tensor)
  local _ <close> = c.no_grad()
  local dtype = tostring(tensor.dtype)
  tensor = tensor:detach()
  if not READ[dtype] then tensor = tensor:to(is_float(dtype) and "f32" or "i64") end
  local value = c.runtime.readback()
  value:set(tensor)
  return value
end

--- Begins to read a table of numbers, booleans and tensors of one element; nil where none of them
--- is on a device.
function late_numbers.begin(values)
  local late, any = { numbers = {}, readbacks = {} }, false
  for name, value in next, values do
    if type(value) == "userdata" and value.device ~= "cpu" then
      late.last = readback_of(value)
      late.readbacks[name], any = late.last, true
    else
      late.numbers[name] = type(value) == "userdata" and value:item() or value
    end
  end
  return any and late or nil
end

-- A number, or what stands for one.
local function number(value) return value == true and 1 or value ~= false and value or 0 end

--- The table with numbers; waits for what is still on its way, once: the others have arrived when
--- the last one has.
function late_numbers.read(late)
  late.last:read()
  local out = {}
  for name, value in next, late.numbers do out[name] = number(value) end
  for name, value in next, late.readbacks do out[name] = number(value:read()) end
  return out
end

return late_numbers
