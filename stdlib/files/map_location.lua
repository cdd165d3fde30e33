--- stdlib/files/map_location.lua: `map_location` of lt.load: the device of each loaded tensor.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local map_location = {}

--- The row of the option for config.check.
map_location.ROW = { type = "string|integer|table|function", doc = "the device of the tensors, a "
  .. "table that maps saved devices to new ones, or a function(tensor, device) that returns a "
  .. "device or another tensor; others are loaded on the CPU" }

--- A function that returns a tensor, which was saved from `device`, where `map` says; nil: all stay
--- on the CPU. `where`: who asks.
function map_location.place(map, where)
  local kind = type(map)
  if map == nil then return nil end
  return function(tensor, device)
    local to = map
    if kind == "table" then to = map[device] end
    if kind == "function" then to = map(tensor, device) end
    if to == nil then return tensor end
    if c.is_tensor(to) then return to end
    if type(to) ~= "string" and math.type(to) ~= "integer" then
      errors.blame("%s: map_location must be a device: got %s for a tensor of %s", where,
        errors.show(to), device)
    end
    return tensor:to { device = to }
  end
end

return map_location
