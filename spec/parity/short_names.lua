-- spec/parity/short_names.lua: random calls of the short compositions of stdlib/ops.
local make = require "spec.parity.inputs"

local call, one_of, random = make.call, make.one_of, math.random
local tensor, wide = make.tensor, make.wide

local function flag() return one_of{true, false} end

-- So many inputs of one shape with at least `least` dims.
local function like(n, least, most, options)
  return function()
    local shape, dtype, list = make.shape_of(least or 0, most or 3, 1), wide(), {}
    for k = 1, n do
      local o = {dtype = dtype, distinct = true}
      for key, value in pairs(options or {}) do o[key] = value end
      list[k] = tensor(shape, o)
      list[k].fixed = o.fixed
    end
    return call(list)
  end
end

-- One input with dims, and options of its dim.
local function along(options)
  return function()
    local shape = make.shape_of(1, 3, 2)
    local o = options and options(shape) or {}
    o.dim = make.dim_of(shape)
    return call({tensor(shape, {dtype = wide(), distinct = true})}, o)
  end
end

-- A list of tensors of one shape, of `least` to `most` dims.
local function listed(least, most)
  return function()
    local case = like(random(3), least, most)()
    case.list = true
    return case
  end
end

local function with(inputs, args, options)
  local case = call(inputs, options)
  case.args = args
  return case
end

local function parts(least)
  return function()
    local shape = {}
    for k = 1, random(least, 3) do shape[k] = 2 * random(2) end
    return with({tensor(shape, {dtype = wide()})}, {2})
  end
end

local function integers(low, high)
  return {dtype = "i64", integer = true, low = low, high = high}
end

return {
  diff = along(function() return {n = random(0, 3)} end),
  trapezoid = along(function() return {dx = 0.5} end),
  cumulative_trapezoid = along(),
  cov = function()
    local o = {correction = random(0, 1)}
    return call({tensor({random(3), random(2, 5)}, {dtype = wide(), distinct = true})}, o)
  end,
  corrcoef = function()
    return call{tensor({random(3), random(3, 5)}, {dtype = wide(), distinct = true})}
  end,
  atleast_1d = like(1), atleast_2d = like(1), atleast_3d = like(1),
  hstack = listed(0, 3), vstack = listed(0, 3), dstack = listed(0, 3),
  column_stack = listed(0, 3),
  block_diag = listed(0, 2), cartesian_prod = listed(1, 1),
  hsplit = parts(1), vsplit = parts(2), dsplit = parts(3),
  deg2rad = like(1), rad2deg = like(1), frac = like(1), isposinf = like(1, 0, 3, {special = true}),
  isneginf = like(1, 0, 3, {special = true}), signbit = like(1, 0, 3, {special = true}),
  heaviside = like(2, 0, 3, {fixed = true}), logaddexp2 = like(2),
  float_power = like(2, 0, 3, {low = 1, high = 3}),
  ldexp = like(2), lcm = like(2, 0, 3, integers(-12, 12)),
  unflatten = function()
    local a, b = random(3), random(3)
    local dim = one_of{1, -1}
    local shape = dim == 1 and {a * b, 2} or {2, a * b}
    return call({tensor(shape, {dtype = wide()})}, {dim = dim, sizes = one_of{{a, b}, {a, -1}}})
  end,
  sinc = like(1, 0, 3, {low = 1}), -- PyTorch's second derivative at 0 is NaN
  ravel = like(1), fliplr = like(1, 2), flipud = like(1, 1),
  diag_embed = function()
    local shape = make.shape_of(1, 2, 1)
    return call({tensor(shape, {dtype = wide()})}, {offset = random(-2, 2)})
  end,
  diagflat = function() return with({like(1)().inputs[1]}, {random(-2, 2)}) end,
  unravel_index = function()
    local shape = {random(3), random(3), random(3)}
    local n = shape[1] * shape[2] * shape[3]
    return with({make.ids(make.shape_of(0, 2, 1), n)}, {shape})
  end,
  kthvalue = along(function() return {k = random(2), keepdim = flag()} end),
  msort = like(1, 1),
  nanquantile = function()
    local shape = make.shape_of(1, 3, 2)
    local x = tensor(shape, {dtype = wide(), distinct = true})
    for k = 1, #x.values, 3 do x.values[k] = 0 / 0 end
    x.fixed = true
    return call({x}, {q = one_of{0, 0.3, 0.5, 1}, dim = make.dim_of(shape), keepdim = flag(),
      interpolation = one_of{"linear", "lower", "higher", "midpoint"}})
  end,
  isin = function()
    local o = integers(0, 30)
    return call({tensor(make.shape_of(0, 2, 1), o), tensor({one_of{1, 5, 40}}, o)},
      {invert = flag()})
  end,
}
