-- spec/parity/images.lua: random calls of the operations of stdlib/ops: images of other sizes,
-- values of images at positions, bags of embeddings.
local make = require "spec.parity.inputs"

local call, ids, one_of, random = make.call, make.ids, make.one_of, math.random
local tensor, wide = make.tensor, make.wide

local function flag() return one_of{true, false} end

-- A call with arguments by place after the inputs.
local function with(inputs, args, options)
  local case = call(inputs, options)
  case.args = args
  return case
end

-- [N, C, ...] with so many dims after these.
local function images(d, n, dtype)
  local shape = {n or random(2), random(2)}
  for _ = 1, d do shape[#shape + 1] = random(d == 3 and 3 or 6) end
  return tensor(shape, {dtype = dtype or wide(), distinct = true})
end

local MODES <const> = {{"nearest", "nearest-exact", "area", "linear"},
  {"nearest", "nearest-exact", "area", "bilinear", "bicubic"},
  {"nearest", "nearest-exact", "area", "trilinear"}}

local function interpolated()
  local d = random(3)
  local x, o = images(d), {mode = one_of(MODES[d])}
  if o.mode:find "linear" or o.mode == "bicubic" then o.align_corners = flag() end
  if o.mode:find "^bi" then o.antialias = flag() end
  if random() < 0.5 then
    o.size = random(7)
    if flag() then
      o.size = {}
      for k = 1, d do o.size[k] = random(7) end
    end
  else
    -- of other dims PyTorch's derivative for a factor just above 2 is that of another function
    o.scale_factor = one_of{2, 3, 1.5, d == 2 and 2.3 or 3.3, 1}
    o.recompute_scale_factor = flag()
  end
  local width = type(o.size) == "table" and o.size[d] or o.size or 2
  if x.shape[d + 2] == 1 or width == 1 then o.antialias = nil end -- PyTorch repeats the first row
  return call({x}, o)
end

local function sampled()
  local d, dtype = one_of{2, 2, 3}, wide()
  local x = images(d, nil, dtype)
  local shape = {x.shape[1]}
  for k = 1, d do shape[k + 1] = random(3) end
  shape[d + 2] = d
  local grid = tensor(shape, {dtype = dtype, low = -2, high = 2})
  local o = {mode = one_of{"bilinear", "nearest", d == 2 and "bicubic" or "bilinear"},
    padding_mode = one_of{"zeros", "border", "reflection"}, align_corners = flag()}
  -- Off the points where derivatives, or the nearest element, jump; nearest has none by the grid.
  for k, v in ipairs(grid.values) do grid.values[k] = v + 0.00371 * k end
  grid.fixed = o.mode == "nearest" or nil
  return call({x, grid}, o)
end

local function transformed()
  local d, n = one_of{2, 3}, random(2)
  local size = {n, random(3)}
  for k = 1, d do size[k + 2] = random(4) end
  return with({tensor({n, d, d + 1}, {dtype = wide()})}, {size}, {align_corners = flag()})
end

-- Offsets of so many bags of n ids, some of them empty.
local function offsets_of(bags, n)
  local list = {0}
  for k = 2, bags do list[k] = random(0, n) end
  table.sort(list)
  return {dtype = "i64", shape = {#list}, values = list, layout = 1}
end

local function bag()
  local dtype, o, named = wide(), {mode = one_of{"sum", "mean", "max"}}, {}
  local n = random(0, 5)
  local at = flag() and ids({n}, 6) or ids({random(3), random(4)}, 6)
  local inputs = {tensor({6, 3}, {dtype = dtype, distinct = true}), at}
  if #at.shape == 1 then
    inputs[3], named[1] = offsets_of(random(4), n), "offsets"
    if random() < 0.3 then
      o.include_last_offset = true
      local list = inputs[3].values
      list[#list + 1] = n
      inputs[3].shape = {#list}
    end
  end
  if o.mode == "sum" and flag() then
    inputs[#inputs + 1] = tensor(at.shape, {dtype = dtype})
    named[#named + 1] = "per_sample_weights"
  end
  if flag() then o.padding_idx = random(0, 5) end
  local case = call(inputs, o)
  case.named = named
  return case
end

local function shuffled(to_pixels)
  return function()
    local r, lead, dtype = random(3), one_of{{}, {2}, {2, 1}}, wide()
    local n, h, w = random(2), random(3), random(3)
    local more = to_pixels and {n * r * r, h, w} or {n, h * r, w * r}
    local shape = table.move(more, 1, 3, #lead + 1, table.move(lead, 1, #lead, 1, {}))
    return with({tensor(shape, {dtype = dtype})}, {r})
  end
end

return {
  interpolate = interpolated, grid_sample = sampled, affine_grid = transformed,
  embedding_bag = bag,
  pixel_shuffle = shuffled(true), pixel_unshuffle = shuffled(false),
  channel_shuffle = function()
    local groups = random(3)
    return with({tensor({2, groups * random(2), random(3), one_of{1, 2}}, {dtype = wide()})},
      {groups})
  end,
  pairwise_distance = function()
    local shape, dtype = {random(2), random(3)}, wide()
    return with({tensor(shape, {dtype = dtype}), tensor(shape, {dtype = dtype})},
      {one_of{2, 3, 1.5}, one_of{1e-6, 0.01}, flag()})
  end,
  local_response_norm = function()
    return with({images(random(3))}, {random(3), one_of{1e-4, 0.5}, one_of{0.75, 2},
      one_of{1, 2}})
  end,
  trace = function() return call{tensor({random(3), random(3)}, {dtype = wide()})} end,
  tensordot = function()
    local a, b, n, dtype = {random(2)}, {}, random(0, 2), wide()
    for k = 1, n do a[k + 1] = random(3) end
    for k = 1, n do b[k] = a[k + 1] end
    b[n + 1] = random(3)
    return with({tensor(a, {dtype = dtype}), tensor(b, {dtype = dtype})}, {n})
  end,
}
