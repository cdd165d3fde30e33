-- spec/parity/window_layers.lua: random layers of convolutions, pooling and padding.
local make = require "spec.parity.inputs"

local one_of, random <const> = make.one_of, math.random

local function flag() return one_of{true, false} end
local function row(args, options, ...) return {args = args, options = options, inputs = {...}} end

-- [2, C, ...], some without the 2.
local function images(n, channels)
  local shape = {channels}
  if random() < 0.8 then table.insert(shape, 1, n == 3 and 1 or 2) end
  for _ = 1, n do shape[#shape + 1] = n == 3 and random(3, 4) or random(4, 6) end
  return make.tensor(shape, {dtype = "f64", distinct = true})
end

local rows = {}
for n = 1, 3 do
  local name = n .. "d"
  rows["Conv" .. name] = function()
    local o = {stride = random(2), padding = random(0, 1), groups = one_of{1, 2}, bias = flag(),
      padding_mode = one_of{"zeros", "reflect", "replicate", "circular"}}
    if random() < 0.3 then o.stride, o.padding, o.dilation = 1, "same", random(2) end
    return row({2, 4, random(2, 3)}, o, images(n, 2))
  end
  rows["ConvTranspose" .. name] = function()
    local stride = random(2)
    return row({4, 2, random(2, 3)}, {stride = stride, padding = random(0, 1), bias = flag(),
      output_padding = random(0, stride - 1), groups = one_of{1, 2}}, images(n, 4))
  end
  rows["MaxPool" .. name] = function()
    return row({random(2, 3)}, {stride = random(2), padding = random(0, 1), ceil_mode = flag(),
      return_indices = flag()}, images(n, 2))
  end
  rows["AvgPool" .. name] = function()
    return row({random(2, 3)}, {stride = random(2), padding = random(0, 1), ceil_mode = flag(),
      count_include_pad = flag()}, images(n, 2))
  end
  local function parts() -- false: the size of the input
    if n == 1 then return random(4) end
    return one_of{random(4), {false, random(4), n == 3 and random(3) or nil}}
  end
  rows["AdaptiveAvgPool" .. name] = function() return row({parts()}, {}, images(n, 2)) end
  rows["AdaptiveMaxPool" .. name] = function()
    return row({parts()}, {return_indices = flag()}, images(n, 2))
  end
  rows["LPPool" .. name] = function()
    local x = images(n, 2)
    for k, v in ipairs(x.values) do x.values[k] = math.abs(v) + 0.25 end
    return row({random(3), 2}, {ceil_mode = flag()}, x)
  end
  rows["MaxUnpool" .. name] = function()
    local shape, inside = {2, 2}, 1
    for k = 1, n do shape[k + 2], inside = 2, inside * 4 end
    local at = make.ids(shape, inside)
    for k = 1, #at.values do at.values[k] = (k * 3) % inside end -- none twice in a channel
    return row({2}, {}, make.tensor(shape, {dtype = "f64", distinct = true}), at)
  end
  for _, kind in ipairs{"ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"} do
    rows[kind .. name] = function() return row({random(2)}, {}, images(n, 2)) end
  end
  rows["ConstantPad" .. name] = function() return row({random(2), 0.5}, {}, images(n, 2)) end
end

return rows
