-- spec/parity/losses.lua: random calls of losses, which are operations and layers alike.
--
-- A row returns the inputs and the options: one line for a loss. In PyTorch they are functions of
-- torch.nn.functional and layers of torch.nn, by the same names.
local make = require "spec.parity.inputs"

local one_of, random = make.one_of, math.random

local function reals(shape, low, high)
  return make.tensor(shape, {dtype = "f64", low = low, high = high, distinct = true})
end
local function fixed(x) x.fixed = true return x end
local function signs(shape) -- of 1 and -1
  local x = make.tensor(shape, {dtype = "f64", integer = true, low = 0, high = 1})
  for i, v in ipairs(x.values) do x.values[i] = 2.0 * v - 1 end
  return fixed(x)
end
local function shares(shape)
  return fixed(make.tensor(shape, {dtype = "f64", low = 0, high = 1}))
end
local function inside(shape) -- of 0.1 to 0.9, and not the same
  local x = reals(shape, 0, 1)
  for i, v in ipairs(x.values) do x.values[i] = 0.1 + 0.8 * math.min(v, 1) end
  return x
end
local function shape_of() return make.shape_of(1, 3, 1) end
local function with(options)
  options.reduction = one_of{"none", "mean", "sum"}
  return options
end
local function table_of() return {random(4), random(2, 4)} end
-- A number that no difference of two multiples of 1/64 (and of 1/1024) is.
local function odd() return one_of{0.5003, 1.0003} end

local function pair(target, options)
  return function()
    local shape = shape_of()
    return {reals(shape), target(shape)}, with(options and options() or {})
  end
end
local function of_table(target, options)
  return function()
    local shape = table_of()
    return {reals(shape), target(shape)}, with(options and options() or {})
  end
end

local function labels(shape) -- distinct ids, then -1
  local x = make.tensor(shape, {dtype = "i64", integer = true, low = -1, high = -1})
  for row = 0, shape[1] - 1 do
    for k = 1, random(shape[2]) do x.values[row * shape[2] + k] = (k + row) % shape[2] end
  end
  return x
end
local function ids(shape) return make.ids({shape[1]}, shape[2]) end
local function vectors(n)
  local shape, list = table_of(), {}
  for k = 1, n do list[k] = reals(shape) end
  return list, shape
end

return {
  binary_cross_entropy = function()
    local shape = shape_of()
    return {inside(shape), shares(shape)}, with{}
  end,
  binary_cross_entropy_with_logits = pair(shares),
  cosine_embedding_loss = function()
    local list, shape = vectors(2)
    list[3] = signs{shape[1]}
    return list, with{margin = one_of{0, 0.3003}}
  end,
  ctc_loss = function() -- in f32: PyTorch has no second derivative
    local n, t, s, classes = random(3), random(3, 6), random(3), random(2, 4)
    local function integers(shape, low, high)
      return make.tensor(shape, {dtype = "i64", integer = true, low = low, high = high})
    end
    local targets, lengths = integers({n, s}, 1, classes - 1), integers({n}, 0, s)
    if random() < 0.3 then -- one after the other
      local sum = 0
      for _, length in ipairs(lengths.values) do sum = sum + length end
      targets = integers({sum}, 1, classes - 1)
    end
    return {make.tensor({n, t, classes}, {dtype = "f32", high = 0}), targets,
      integers({n}, 1, t), lengths}, with{zero_infinity = one_of{true, false}}
  end,
  gaussian_nll_loss = function()
    local list, shape = vectors(2)
    list[3] = reals(shape, 1, 3)
    return list, with{full = one_of{true, false}}
  end,
  hinge_embedding_loss = pair(signs, function() return {margin = odd()} end),
  huber_loss = pair(reals, function() return {delta = odd()} end),
  kl_div = pair(shares, function() return {} end),
  margin_ranking_loss = function()
    local shape = shape_of()
    return {reals(shape), reals(shape), signs(shape)}, with{margin = odd()}
  end,
  multi_margin_loss = of_table(ids, function() return {p = one_of{1, 2}, margin = odd()} end),
  multilabel_margin_loss = of_table(labels),
  multilabel_soft_margin_loss = of_table(shares),
  nll_loss = of_table(ids),
  poisson_nll_loss = pair(shares, function() return {full = one_of{true, false}} end),
  smooth_l1_loss = pair(reals, function() return {beta = odd()} end),
  soft_margin_loss = pair(signs),
  triplet_margin_loss = function()
    local list = vectors(3)
    return list, with{margin = odd(), p = one_of{1, 2}, swap = one_of{true, false}}
  end,
}
