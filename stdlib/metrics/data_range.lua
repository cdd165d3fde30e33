--- stdlib/metrics/data_range.lua: the option data_range of image metrics. It is required: a
-- range taken from the data would differ from batch to batch.
local data_range = {}

local function wrong(value)
  local fits = type(value) == "number" and value > 0
    or type(value) == "table" and #value == 2 and type(value[1]) == "number"
    and type(value[2]) == "number" and value[1] < value[2]
  return not fits and "must be a number above 0, or {low, high}" or nil
end

data_range.option = { type = "number|table", required = true, check = wrong,
  doc = "maximum - minimum of the values: 1.0 or 255; {low, high} also clamps images" }

--- Returns the width of the range.
function data_range.width(metric)
  local range = metric.data_range
  return type(range) == "number" and range or range[2] - range[1]
end

--- Returns the images, clamped to the range if it is {low, high}.
function data_range.clamp(metric, x)
  local range = metric.data_range
  if type(range) == "number" then return x end
  return x:clamp { min = range[1], max = range[2] }
end

return data_range
