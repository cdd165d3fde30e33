-- spec/parity/windows.lua: random calls of convolutions, pooling and pad.
local make = require "spec.parity.inputs"

local call, one_of, random <const>, wide = make.call, make.one_of, math.random, make.wide
local tensor = make.tensor

local function flag() return one_of{true, false} end

--- A number for all dims, or one for each.
local function each(n, least, most)
  if random() < 0.5 then return random(least, most) end
  local list = {}
  for k = 1, n do list[k] = random(least, most) end
  return list
end

--- [N, C, ...], a quarter without N; volumes are small, so that few numbers are recorded.
local function images(n, channels, d, distinct)
  local shape = {channels}
  if random() < 0.75 then table.insert(shape, 1, n == 3 and 1 or 2) end
  for _ = 1, n do shape[#shape + 1] = n == 3 and random(3, 4) or random(5, 9 - n) end
  return tensor(shape, {dtype = d or wide(), distinct = distinct})
end

local function convolution(n)
  local d, groups, channels = wide(), one_of{1, 2}, n == 3 and 2 or 4
  local shape = {2 * random(2), channels // groups}
  for _ = 1, n do shape[#shape + 1] = random(n == 3 and 2 or 3) end
  local list = {images(n, channels, d), tensor(shape, {dtype = d})}
  if random() < 0.7 then list[3] = tensor({shape[1]}, {dtype = d}) end
  local o = {stride = each(n, 1, 2), padding = each(n, 0, 1), dilation = each(n, 1, 2),
    groups = groups}
  if random() < 0.3 then o.stride, o.padding = 1, one_of{"same", "valid"} end
  return call(list, o)
end

local function transposed(n)
  local d, groups, channels = wide(), one_of{1, 2}, n == 3 and 2 or 4
  local shape = {channels, random(2)}
  for _ = 1, n do shape[#shape + 1] = n == 3 and 2 or random(2, 3) end
  local list = {images(n, channels, d), tensor(shape, {dtype = d})}
  if random() < 0.7 then list[3] = tensor({shape[2] * groups}, {dtype = d}) end
  local more = one_of{0, 1}
  return call(list, {stride = each(n, 1 + more, 3), padding = each(n, 0, 1),
    output_padding = more, groups = groups, dilation = each(n, 1, 2)})
end

local function pool(n, o)
  o.kernel_size, o.padding, o.ceil_mode = each(n, 2, n == 3 and 2 or 3), each(n, 0, 1), flag()
  if random() < 0.6 then o.stride = each(n, 1, 3) end
  return call({images(n, 2, nil, true)}, o)
end

local function parts(n, o)
  o.output_size = each(n, 1, 4)
  return call({images(n, 2, nil, true)}, o)
end

local function unpool(n)
  local x = images(n, 2, nil, true)
  local shape, inside = table.move(x.shape, 1, #x.shape, 1, {}), 1
  for k = #shape - n + 1, #shape do inside = inside * shape[k] * 2 end
  local at = make.ids(shape, inside)
  local outer = #at.values // (inside // 2 ^ n)
  for c = 0, outer - 1 do -- none twice in a channel
    local count <const> = #at.values // outer
    local first, step = random(0, inside - 1), one_of{1, 2}
    for k = 1, count do
      at.values[math.tointeger(c * count + k)] = (first + step * k) % math.tointeger(inside)
    end
  end
  return call({x, at}, {kernel_size = 2})
end

local rows = {}
for n = 1, 3 do
  local name = n .. "d"
  rows["conv" .. name] = function() return convolution(n) end
  rows["conv_transpose" .. name] = function() return transposed(n) end
  rows["max_pool" .. name] = function()
    return pool(n, {dilation = each(n, 1, 2), return_indices = flag()})
  end
  rows["avg_pool" .. name] = function()
    local o = {count_include_pad = flag()}
    if n > 1 and random() < 0.3 then o.divisor_override = random(5) end
    return pool(n, o)
  end
  rows["lp_pool" .. name] = function()
    local c = pool(n, {norm_type = one_of{1, 2, 3}})
    local o = c.options
    o.padding = nil
    if n == 1 then o.kernel_size, o.stride = random(2, 3), random(2) end -- no lists there
    for k, v in ipairs(c.inputs[1].values) do c.inputs[1].values[k] = math.abs(v) + 0.25 end
    return c
  end
  rows["adaptive_avg_pool" .. name] = function() return parts(n, {}) end
  rows["adaptive_max_pool" .. name] = function() return parts(n, {return_indices = flag()}) end
  rows["max_unpool" .. name] = function() return unpool(n) end
end

function rows.pad()
  local mode = one_of{"constant", "reflect", "replicate", "circular"}
  local n = random(mode == "constant" and 0 or 1, 3)
  local shape, list = {2, 2}, {}
  for k = 1, n do
    shape[#shape + 1] = random(3, 5)
    list[2 * k - 1], list[2 * k] = random(-1, 2), random(-1, 2)
  end
  if n > 0 and random() < 0.3 then table.remove(shape, 1) end
  local o = {pad = list, mode = mode}
  if mode == "constant" then o.value = one_of{0, 1.5} end
  return call({tensor(shape, {dtype = wide()})}, o)
end

return rows
