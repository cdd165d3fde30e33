-- spec/parity/composites.lua: random calls of the ops that are made of others.
local make = require "spec.parity.inputs"

local beside, call, dim_of, ids, mask = make.beside, make.call, make.dim_of, make.ids, make.mask
local one_of, random <const>, shape_of = make.one_of, math.random, make.shape_of
local tensor, wide = make.tensor, make.wide

local function plain(shape, d) return tensor(shape, {dtype = d or wide()}) end
local function distinct(shape) return tensor(shape, {dtype = wide(), distinct = true}) end
local function few(shape)
  return tensor(shape, {dtype = "f32", integer = true, low = -1, high = 2})
end
local function copy(list) return table.move(list, 1, #list, 1, {}) end

local function with_dim(maker, least)
  return function()
    local shape = shape_of(least or 1, 3, 1)
    return call({maker(shape)}, {dim = dim_of(shape)})
  end
end

local function kept(maker)
  return function()
    local shape = shape_of(1, 3, 1)
    return call({maker(shape)}, {dim = dim_of(shape), keepdim = one_of{true, false}})
  end
end

local function over_dims()
  local shape = shape_of(1, 4, 1)
  return call({tensor(shape, {dtype = wide(), special = true})}, {dims = {dim_of(shape)}})
end

local function halved()
  local shape = shape_of(1, 3, 1)
  local dim = random(#shape)
  shape[dim] = 2 * shape[dim]
  return call({plain(shape)}, {dim = dim})
end

local function moments()
  local shape = shape_of(1, 3, 2)
  return call({plain(shape)}, {dims = {dim_of(shape)}, keepdim = one_of{true, false}})
end

local function three()
  local shape, d = shape_of(0, 3), wide()
  return {plain(shape, d), plain(beside(shape), d), tensor(beside(shape), {dtype = d, low = 1})}
end

local function combined() return call(three(), {value = one_of{1, -2}}) end

-- (x, index, source) for one dim, the index with distinct places where `once`.
local function scattered(once)
  local shape, d = shape_of(1, 3, 1), wide()
  local dim = random(#shape)
  local index = ids(shape, shape[dim])
  if once then
    local inner = 1
    for k = dim + 1, #shape do inner = inner * shape[k] end
    local turn = random(shape[dim])
    for k = 1, #index.values do
      index.values[k] = ((k - 1) // inner + turn) % shape[dim]
    end
  end
  local source = tensor(shape, {dtype = d, distinct = true})
  for k, v in ipairs(source.values) do source.values[k] = v + 1 / 2048 end -- none equal to x
  return {tensor(shape, {dtype = d, distinct = true}), index, source}, dim
end

local function images(n, c, h, w) return plain{n, c, h, w} end

local function windows()
  return {kernel_size = {random(2), random(3)}, dilation = one_of{1, 2}, padding = random(0, 1),
    stride = random(2)}
end

local function sorted_list(n)
  local list = {}
  for k = 1, n do list[k] = random(-64, 64) / 32 end
  table.sort(list)
  return {dtype = "f32", shape = {n}, values = list, layout = 1, fixed = true}
end

local function fixed(x)
  x.fixed = true
  return x
end

return {
  rms_norm = function()
    local d, n = wide(), random(2, 4)
    return call({tensor({random(3), n}, {dtype = d, distinct = true}), plain({n}, d)},
      {normalized_shape = {n}, eps = one_of{1e-3, nil}})
  end,
  group_norm = function()
    local d, shape = wide(), shape_of(0, 2, 1)
    local groups = random(2)
    table.insert(shape, 1, 2 * groups)
    table.insert(shape, 1, random(3))
    return call({tensor(shape, {dtype = d, distinct = true}), plain({2 * groups}, d),
      plain({2 * groups}, d)}, {num_groups = groups, eps = 1e-3})
  end,
  instance_norm = function()
    local d, shape = wide(), shape_of(1, 2, 2)
    table.insert(shape, 1, random(3))
    table.insert(shape, 1, random(3))
    return call({tensor(shape, {dtype = d, distinct = true}), plain({shape[2]}, d),
      plain({shape[2]}, d)}, {eps = 1e-3})
  end,
  glu = halved, swiglu = halved, softmin = with_dim(plain),
  prelu = function()
    local shape, d = shape_of(2, 4, 1), wide()
    local channels = random() < 0.5 and shape[2] or 1
    if channels == 1 then shape = shape_of(0, 4) end
    local x = plain(shape, d)
    for k, v in ipairs(x.values) do x.values[k] = v == 0 and 0.25 or v end -- off the bend
    return call{x, plain({channels}, d)}
  end,
  isclose = function()
    local shape = shape_of(0, 3)
    return call({fixed(few(shape)), fixed(few(beside(shape)))},
      {rtol = one_of{0, 0.5}, atol = one_of{0, 1}, equal_nan = one_of{true, false}})
  end,
  nan_to_num = function()
    return call({tensor(shape_of(0, 3), {dtype = "f32", special = true})},
      one_of{{}, {nan = 1.5, posinf = 7, neginf = -7}})
  end,
  lerp = function() return call(three()) end,
  addcmul = combined, addcdiv = combined,
  bitwise_not = function()
    return call{tensor(shape_of(0, 3), {dtype = "i32", integer = true})}
  end,
  normalize = with_dim(distinct),
  cosine_similarity = function()
    local shape, d = shape_of(1, 3, 1), wide()
    return call({tensor(shape, {dtype = d, distinct = true}),
      tensor(shape, {dtype = d, distinct = true})}, {dim = dim_of(shape)})
  end,
  count_nonzero = function() return call({few(shape_of(1, 3, 1))}, {dims = {1}}) end,
  nansum = over_dims, nanmean = over_dims, var_mean = moments, std_mean = moments,
  aminmax = kept(distinct), median = kept(distinct), nanmedian = kept(distinct),
  mode = kept(distinct),
  quantile = function()
    local shape = shape_of(1, 3, 1)
    local x = distinct(shape)
    local q = {dtype = x.dtype, shape = {2}, values = {0.25, 0.75}, layout = 1, fixed = true}
    return call({x, q},
      {dim = dim_of(shape), keepdim = one_of{true, false},
        interpolation = one_of{"linear", "lower", "higher", "midpoint"}})
  end,
  cumprod = with_dim(plain), logcumsumexp = with_dim(plain),
  cummax = with_dim(distinct), cummin = with_dim(distinct),
  tile = function()
    return call({plain(shape_of(0, 3))}, {dims = one_of{{2}, {1, 3}, {2, 1, 2}, {0, 2}}})
  end,
  repeat_interleave = function()
    local shape = shape_of(1, 3, 1)
    local dim = random(#shape)
    return call({plain(shape), ids(one_of{{shape[dim]}, {}}, 4)}, {dim = dim})
  end,
  roll = function()
    local shape = shape_of(1, 3)
    return call({plain(shape)}, one_of{{shifts = random(-5, 5)},
      {shifts = {random(-5, 5)}, dims = {dim_of(shape)}}})
  end,
  rot90 = function()
    return call({plain(shape_of(2, 3))},
      {k = random(-3, 5), dims = one_of{{1, 2}, {2, 1}, {-1, 1}}})
  end,
  unfold = function()
    local shape = shape_of(1, 3, 1)
    local dim = random(#shape)
    return call({plain(shape)}, {dim = dim, size = random(shape[dim]), step = random(3)})
  end,
  im2col = function() return call({images(random(2), random(2), 5, 6)}, windows()) end,
  col2im = function()
    local o = windows()
    o.dilation, o.output_size = 1, {5, 6}
    local n = 1
    for k, size in ipairs(o.output_size) do
      n = n * ((size + 2 * o.padding - o.kernel_size[k]) // o.stride + 1)
    end
    return call({plain{2, 2 * o.kernel_size[1] * o.kernel_size[2], n}}, o)
  end,
  diagonal = function()
    return call({plain(shape_of(2, 4))},
      {offset = random(-2, 2), dim1 = one_of{1, 2}, dim2 = -1})
  end,
  diag = function() return call({plain(shape_of(1, 2))}, {diagonal = random(-2, 2)}) end,
  bmm = function()
    local d, n, k = wide(), random(0, 3), random(0, 4)
    return call{plain({n, 2, k}, d), plain({n, k, 3}, d)}
  end,
  baddbmm = function()
    local d, n = wide(), random(3)
    local x = plain(one_of{{3}, {n, 2, 3}, {2, 1}}, d)
    return call({x, plain({n, 2, 4}, d), plain({n, 4, 3}, d)},
      {beta = one_of{1, 0.5}, alpha = one_of{1, 2}})
  end,
  dot = function()
    local d, n = wide(), random(0, 5)
    return call{plain({n}, d), plain({n}, d)}
  end,
  kron = function()
    local d = wide()
    return call{plain(shape_of(0, 3), d), plain(shape_of(0, 3), d)}
  end,
  cdist = function()
    local d, n = wide(), one_of{2, 3, 30}
    return call({tensor({n, 3}, {dtype = d, low = 0, distinct = true}),
      tensor({4, 3}, {dtype = d, low = 4, high = 8, distinct = true})}, {p = one_of{0.5, 1, 2, 3}})
  end,
  scatter = function()
    local inputs, dim = scattered(true)
    return call(inputs, {dim = dim})
  end,
  scatter_reduce = function()
    local inputs, dim = scattered()
    return call(inputs, {dim = dim, reduce = one_of{"sum", "prod", "mean", "amax", "amin"},
      include_self = one_of{true, false}})
  end,
  index_reduce = function()
    local shape = shape_of(1, 3, 1)
    local dim, d = random(#shape), wide()
    local part = copy(shape)
    part[dim] = random(0, 5)
    return call({tensor(shape, {dtype = d, distinct = true}), ids({part[dim]}, shape[dim]),
      tensor(part, {dtype = d, distinct = true})},
      {dim = dim, reduce = one_of{"prod", "mean", "amax", "amin"},
        include_self = one_of{true, false}})
  end,
  take_along_dim = function()
    local shape = shape_of(1, 3, 1)
    local dim = random(#shape)
    local at = copy(shape)
    for k = 1, #at do
      if k ~= dim and random() < 0.3 then at[k] = 1 end
    end
    at[dim] = random(0, 3)
    return call({plain(shape), ids(at, shape[dim])}, {dim = dim})
  end,
  masked_scatter = function()
    local shape, d = shape_of(0, 3), wide()
    local n = 1
    for _, size in ipairs(shape) do n = n * size end
    return call{plain(shape, d), mask(shape), plain({n + 2}, d)}
  end,
  unique = function()
    return call({fixed(few(shape_of(0, 3)))}, {return_inverse = true, return_counts = true})
  end,
  unique_consecutive = function()
    return call({fixed(few(shape_of(1, 2)))}, {return_inverse = true, return_counts = true})
  end,
  bincount = function()
    local n = random(6)
    local list = {ids({n}, 5)}
    if random() < 0.5 then list[2] = fixed(plain({n})) end
    return call(list, {minlength = random(0, 7)})
  end,
  histc = function()
    return call({fixed(plain(shape_of(1, 2, 1)))}, {bins = random(5), min = -1, max = 2})
  end,
  searchsorted = function()
    return call({sorted_list(random(0, 6)), fixed(tensor(shape_of(0, 3), {low = -2, high = 2}))},
      {right = one_of{true, false}})
  end,
  bucketize = function()
    return call({fixed(tensor(shape_of(0, 3), {low = -2, high = 2})), sorted_list(random(0, 6))},
      {right = one_of{true, false}})
  end,
}
