-- spec/parity/places.lua: random calls of the ops that look at a tensor in another shape or order,
-- or at some of its positions.
local make = require "spec.parity.inputs"

local call, dim_of, ids, mask, one_of = make.call, make.dim_of, make.ids, make.mask, make.one_of
local random <const>, shape_of, tensor, wide = math.random, make.shape_of, make.tensor, make.wide

local function plain(shape) return tensor(shape, {dtype = wide()}) end

-- 1 to n in any order.
local function order_of(n)
  local order = {}
  for k = 1, n do table.insert(order, random(#order + 1), k) end
  return order
end

-- The same dim, counted from the start or the end.
local function either_way(dim, n) return random() < 0.5 and dim or dim - n - 1 end

-- Another shape of as many elements: dims in any order, some joined, some of size 1 put in; -1 in
-- place of one where that says which.
local function reshaped()
  local shape, size, full = shape_of(0, 4), {}, true
  for _, dim in ipairs(order_of(#shape)) do
    full = full and shape[dim] > 0
    if #size > 0 and random() < 0.4 then
      size[#size] = size[#size] * shape[dim]
    else
      size[#size + 1] = shape[dim]
    end
    if random() < 0.2 then size[#size + 1] = 1 end
  end
  if full and #size > 0 and random() < 0.3 then size[random(#size)] = -1 end
  return call({plain(shape)}, {size = size})
end

-- A size that a shape expands to, -1 for what stays, and the shape.
local function expanded()
  local shape, size = shape_of(0, 3), {}
  for k = 1, random(0, 2) do size[k] = random(3) end
  for k, n in ipairs(shape) do
    if random() < 0.4 then
      shape[k], size[#size + 1] = 1, random(0, 4)
    else
      size[#size + 1] = one_of{n, -1}
    end
  end
  return call({plain(shape)}, {size = size})
end

local function permuted()
  local shape = shape_of(0, 4)
  local dims = order_of(#shape)
  for k, dim in ipairs(dims) do dims[k] = either_way(dim, #shape) end
  return call({plain(shape)}, {dims = dims})
end

local function moved()
  local shape = shape_of(1, 4)
  local source, destination = order_of(#shape), order_of(#shape)
  for k = #shape, random(#shape) + 1, -1 do source[k], destination[k] = nil, nil end
  for k = 1, #source do
    source[k] = either_way(source[k], #shape)
    destination[k] = either_way(destination[k], #shape)
  end
  return call({plain(shape)}, {source = source, destination = destination})
end

local function narrowed()
  local shape = shape_of(1, 4, 1)
  local dim = dim_of(shape)
  local n = shape[dim > 0 and dim or dim + #shape + 1]
  local start = random(n)
  return call({plain(shape)}, {dim = dim, start = start, length = random(0, n - start + 1)})
end

local function sliced()
  local shape = shape_of(1, 4, 1)
  local dim = dim_of(shape)
  local n = shape[dim > 0 and dim or dim + #shape + 1]
  local from = random(n)
  local to = random(from, n)
  return call({plain(shape)}, {dim = dim, from = either_way(from, n), to = either_way(to, n),
    step = random(3)})
end

return {
  view = reshaped, reshape = reshaped, expand = expanded,
  broadcast_to = expanded,
  permute = permuted, movedim = moved,
  select = function()
    local shape = shape_of(1, 4, 1)
    local dim = dim_of(shape)
    local n = shape[dim > 0 and dim or dim + #shape + 1]
    return call({plain(shape)}, {dim = dim, index = either_way(random(n), n)})
  end,
  narrow = narrowed, slice = sliced,
  index_add = function()
    local shape, d = shape_of(1, 3, 1), wide()
    local dim, part = random(#shape), {}
    for k, n in ipairs(shape) do part[k] = n end
    part[dim] = random(0, 5)
    return call({tensor(shape, {dtype = d}), ids({part[dim]}, shape[dim]),
      tensor(part, {dtype = d})}, {dim = dim, alpha = one_of{1, -0.5}})
  end,
  nonzero = function()
    local shape = shape_of(0, 3)
    return call{one_of{mask(shape), tensor(shape, {dtype = make.float(), low = 0, high = 0}),
      tensor(shape, {dtype = "i64", integer = true, low = -1, high = 1})}}
  end,
  masked_select = function()
    local shape = shape_of(0, 3)
    local other = make.beside(shape)
    if random() < 0.5 then shape, other = other, shape end
    return call{plain(shape), mask(other)}
  end,
}
