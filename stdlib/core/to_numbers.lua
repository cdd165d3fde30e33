-- stdlib/core/to_numbers.lua: logged values, tensors among them, as Lua numbers to display.
--
-- Values on a device are copied to the host only when they are displayed, all in one copy: one
-- synchronization.
local c = require "ltrain.c"
local is_float = require "ltrain.core.is_float"

-- A number, or what stands for one.
local function number(value)
  if type(value) == "userdata" then value = value:item() end
  return value == true and 1 or value ~= false and value or 0
end

-- Floating tensors of devices, by device: their keys and themselves.
local function on_devices(values)
  local lists = {}
  for key, value in next, values do
    if type(value) == "userdata" and is_float(value.dtype) and value.device ~= "cpu" then
      local list = lists[value.device] or { keys = {}, tensors = {} }
      lists[value.device] = list
      table.insert(list.keys, key)
      table.insert(list.tensors, value)
    end
  end
  return lists
end

-- In f64, which holds any floating number.
local function read(tensors)
  local _ <close> = c.no_grad()
  local flat = {}
  for i, tensor in ipairs(tensors) do flat[i] = tensor:detach():to("f64"):reshape { 1 } end
  return c.cat(flat):tolist()
end

--- The same table with numbers in place of tensors of one element, and of booleans.
return function(values)
  local out = {}
  for _, list in next, on_devices(values) do
    if #list.keys > 1 then
      local to_numbers = read(list.tensors)
      for i, key in ipairs(list.keys) do out[key] = to_numbers[i] end
    end
  end
  for key, value in next, values do
    if out[key] == nil then out[key] = number(value) end
  end
  return out
end
