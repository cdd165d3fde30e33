-- spec/parity/cases.lua: random calls of the ops of lt.ops() and of stdlib/ops, for comparison with
-- PyTorch.
--
-- A case is plain data: {op, inputs, args, options, named, list, in_place}, inputs as
-- spec/parity/inputs.lua has them, arguments by place after them; the last inputs go into the
-- options by the names in `named`. Calls of views and positions: spec/parity/places.lua; of lists
-- of gradients: spec/parity/lists.lua; of stdlib/ops: spec/parity/images.lua,
-- short_names.lua; what has a row in written.lua alone is compared with the samples of op_db. A
-- quarter of the calls is made of integers: spec/parity/integers.lua.
local composites = require "spec.parity.composites"
local images = require "spec.parity.images"
local integers = require "spec.parity.integers"
local lists = require "spec.parity.lists"
local losses = require "spec.parity.losses"
local lt = require "ltrain"
local make = require "spec.parity.inputs"
local places = require "spec.parity.places"
local short_names = require "spec.parity.short_names"
local public = require "ltrain.core.exports"
local tree = require "ltrain.core.tree"
local windows = require "spec.parity.windows"
local written = require "spec.parity.written"

local M = {}

local random <const> = math.random
local beside, call, dim_of, float = make.beside, make.call, make.dim_of, make.float
local ids, mask, one_of, shape_of = make.ids, make.mask, make.one_of, make.shape_of
local tensor, wide = make.tensor, make.wide

-- Of which PyTorch has no derivative (by the first input).
local UNDERIVED <const> = {zeta = true, igamma = true, igammac = true, modified_bessel_k0 = true,
  modified_bessel_k1 = true, scaled_modified_bessel_k0 = true, scaled_modified_bessel_k1 = true,
  spherical_bessel_j0 = true}

local function unary(op)
  local low, high = op.lo > 0 and op.lo < 1 and 0 or op.lo, op.hi
  local x = tensor(shape_of(0, 4), {dtype = float(), low = math.floor(low),
    high = math.ceil(high), special = true})
  x.fixed = UNDERIVED[op.name]
  return call{x}
end

-- Two values of each number: none is a value that elements have, where a function bends.
local NUMBERS <const> = {negative_slope = {0.01, 0.2}, alpha = {1, 0.625}, lambd = {0.505, 0.303},
  min_val = {-1.01, 0.01}, max_val = {1.01, 1.7}, beta = {1, 2}, threshold = {20, 0.505},
  value = {-0.7, 1}, eps = {0.1303, 0.0303}}

local function unary_numbers(op)
  local case = unary(op)
  for _, a in ipairs(op.args) do case.options[a.name] = one_of(NUMBERS[a.name]) end
  return case
end

local function binary(op)
  local dtype, shape = float(), shape_of(0, 3)
  if op.dtype == "int" then
    local o = {dtype = "i32", integer = true, low = 0, high = 9}
    return call{tensor(shape, o), tensor(beside(shape), o)}
  end
  local o = {dtype = dtype, low = math.floor(op.lo or -3), high = math.ceil(op.hi or 3)}
  if op.kind == "compare" then o = {dtype = dtype, low = -2, high = 2, special = true} end
  local a, b = tensor(shape, o), tensor(beside(shape), o)
  a.fixed = UNDERIVED[op.name]
  return call{a, b}
end

local function reduce()
  local shape = shape_of(1, 4, 1)
  return call({tensor(shape, {dtype = wide(), distinct = true})},
    {dims = one_of{{1}, {-1}, {#shape}}, keepdim = one_of{true, false}})
end
local function along()
  local shape = shape_of(1, 4, 1)
  return call({tensor(shape, {dtype = wide(), distinct = true})}, {dim = dim_of(shape)})
end
local function plain() return call{tensor(shape_of(0, 4), {dtype = wide()})} end
local function pair()
  local shape, dtype = shape_of(1, 3, 1), wide()
  return call({tensor(shape, {dtype = dtype}), tensor(shape, {dtype = dtype, low = 0, high = 1})},
    {reduction = one_of{"none", "mean", "sum"}})
end

local KINDS <const> = {unary = unary, unary_numbers = unary_numbers, binary = binary,
  compare = binary, test = unary,
  reduce = reduce, variance = reduce, norm = reduce, softmax = along, scan = along, loss = pair}

local OPS <const> = {
  clamp = function()
    return call({tensor(shape_of(0, 3), {dtype = float()})}, {min = -1.01, max = 1.51})
  end,
  any = function() return call({mask(shape_of(1, 3, 1))}, {dims = {1}}) end,
  all = function() return call({mask(shape_of(1, 3, 1))}, {dims = {1}}) end,
  argmax = along, argmin = along, max = along, min = along,
  sort = function() local c = along() c.options.descending = one_of{true, false} return c end,
  argsort = along,
  topk = function() local c = along() c.options.k = 1 return c end,
  clone = plain, tril = function() return call({tensor(shape_of(2, 4), {dtype = wide()})},
    {diagonal = random(-1, 1)}) end,
  triu = function() return call({tensor(shape_of(2, 4), {dtype = wide()})},
    {diagonal = random(-1, 1)}) end,
  t = function() return call{tensor(shape_of(2, 2), {dtype = wide()})} end,
  transpose = function()
    local shape = shape_of(2, 4)
    return call({tensor(shape, {dtype = wide()})}, {dim0 = dim_of(shape), dim1 = dim_of(shape)})
  end,
  unsqueeze = function()
    local shape = shape_of(1, 3)
    return call({tensor(shape, {dtype = wide()})}, {dim = random(#shape + 1)})
  end,
  squeeze = plain, flatten = plain,
  flip = function()
    local shape = shape_of(1, 3)
    return call({tensor(shape, {dtype = wide()})}, {dims = {dim_of(shape)}})
  end,
  outer = function()
    local d = wide()
    return call{tensor({random(4)}, {dtype = d}), tensor({random(4)}, {dtype = d})}
  end,
  where = function()
    local shape, d = shape_of(0, 3), wide()
    return call{mask(beside(shape)), tensor(shape, {dtype = d}), tensor(beside(shape), {dtype = d})}
  end,
  masked_fill = function()
    local shape = shape_of(0, 3)
    return call({tensor(shape, {dtype = wide()}), mask(beside(shape))}, {value = 2.5})
  end,
  index_select = function()
    local shape = shape_of(1, 3, 1)
    local dim = random(#shape)
    return call({tensor(shape, {dtype = wide()}), ids({random(0, 4)}, shape[dim])}, {dim = dim})
  end,
  gather = function()
    local shape = shape_of(1, 3, 1)
    local dim = random(#shape)
    return call({tensor(shape, {dtype = wide()}), ids(shape, shape[dim])}, {dim = dim})
  end,
  scatter_add = function()
    local shape, d = shape_of(1, 3, 1), wide()
    local dim = random(#shape)
    return call({tensor(shape, {dtype = d}), ids(shape, shape[dim]), tensor(shape, {dtype = d})},
      {dim = dim})
  end,
  embedding = function() return call{tensor({5, 3}, {dtype = wide()}), ids(shape_of(0, 2), 5)} end,
  one_hot = function() return call({ids(shape_of(0, 2), 4)}, {num_classes = 4}) end,
  cat = function()
    local d, n = wide(), random(3)
    local c = call({tensor({random(3), n}, {dtype = d}), tensor({random(3), n}, {dtype = d})},
      {dim = 1})
    c.list = true
    return c
  end,
  stack = function()
    local shape, d = shape_of(0, 2), wide()
    local c = call({tensor(shape, {dtype = d}), tensor(shape, {dtype = d})},
      {dim = random(#shape + 1)})
    c.list = true
    return c
  end,
  matmul = function()
    local d, n, batch = wide(), random(0, 4), shape_of(0, 2, 1)
    local a, b = beside(batch), beside(batch)
    a[#a + 1], b[#b + 1] = random(4), n
    a[#a + 1], b[#b + 1] = n, random(4)
    if random() < 0.2 then a = {n} end
    if random() < 0.2 then b = {n} end
    return call{tensor(a, {dtype = d}), tensor(b, {dtype = d})}
  end,
  linear = function()
    local d, n, m, x = wide(), random(4), random(4), shape_of(0, 3)
    x[#x + 1] = n
    return call{tensor(x, {dtype = d}), tensor({m, n}, {dtype = d}), tensor({m}, {dtype = d})}
  end,
  addmm = function()
    local d, n = wide(), random(4)
    return call({tensor({3}, {dtype = d}), tensor({2, n}, {dtype = d}),
      tensor({n, 3}, {dtype = d})},
      {beta = one_of{1, 0.5}, alpha = one_of{1, 2}})
  end,
  layer_norm = function()
    local d, n = wide(), random(2, 4)
    return call({tensor({random(3), n}, {dtype = d, distinct = true}), tensor({n}, {dtype = d}),
      tensor({n}, {dtype = d})}, {normalized_shape = {n}, eps = 1e-3})
  end,
  batch_norm = function() -- with the statistics of the batch, or with given ones
    local d, shape = wide(), shape_of(0, 2, 1)
    table.insert(shape, 1, random(3))
    table.insert(shape, 1, random(2, 4))
    local function channel(low) return tensor({shape[2]}, {dtype = d, low = low}) end
    local list = {tensor(shape, {dtype = d, distinct = true}), channel(), channel()}
    if random() < 0.3 then
      list[4], list[5] = channel(), channel(1)
      list[4].fixed, list[5].fixed = true, true
    end
    return call(list, {eps = 1e-3})
  end,
  cross_entropy = function()
    local n, classes = random(4), random(2, 4)
    return call({tensor({n, classes}, {dtype = wide()}), ids({n}, classes)},
      {label_smoothing = one_of{0, 0.1}, reduction = one_of{"none", "mean", "sum"}})
  end,
  scaled_dot_product_attention = function()
    local d, t, s = wide(), random(4), random(4)
    return call({tensor({2, 2, t, 3}, {dtype = d}), tensor({2, 2, s, 3}, {dtype = d}),
      tensor({2, 2, s, 2}, {dtype = d})}, {causal = t == s and one_of{true, false}})
  end,
}

for name, row in pairs(losses) do
  OPS[name] = function()
    local list, options = row()
    return call(list, options)
  end
end
for _, more in ipairs{composites, images, lists, places, short_names, windows} do
  for name, maker in pairs(more) do OPS[name] = maker end
end

-- What the comparison leaves out, with the reason.
M.except = {
  combinations = "of lists: spec/ops/differences_spec.lua, with PyTorch's values",
  gradient = "of lists: spec/ops/differences_spec.lua, with PyTorch's values",
  matrix_exp = "as linalg.matrix_exp",
  svd_lowrank = "spec/linalg/checked_spec.lua", pca_lowrank = "spec/linalg/checked_spec.lua",
  airy_ai = "PyTorch's is good to 1e-6", bessel_j0 = "PyTorch's is good to 1e-6",
  bessel_j1 = "PyTorch's is good to 1e-6", bessel_y0 = "PyTorch's is good to 1e-6",
  bessel_y1 = "PyTorch's is good to 1e-6",
  rand = "draws", randn = "draws", randint = "draws", randperm = "draws", multinomial = "draws",
  bernoulli = "draws", dropout = "draws", dropout1d = "draws", dropout2d = "draws",
  dropout3d = "draws", alpha_dropout = "draws", feature_alpha_dropout = "draws",
  gumbel_softmax = "draws", rrelu = "draws",
  index_copy_ = "as index_copy", index_fill_ = "as index_fill", index_put_ = "as index_put",
  put_ = "as put", slice_scatter = "spec/ops/positions_spec.lua",
  quantize_float8 = "bits: spec/ops/float8_spec.lua",
  dequantize_float8 = "of bits: spec/ops/float8_spec.lua",
  scaled_mm = "of bits: spec/ops/float8_spec.lua",
  sgd_step = "see ./dev bench torch",
  adam_step = "see ./dev bench torch", lstm_layer = "compared as nn.LSTM",
  gru_layer = "compared as nn.GRU", rnn_layer = "compared as nn.RNN",
  sigmoid_focal_loss = "torchvision's: spec/nn/losses_spec.lua",
  dice_loss = "not in PyTorch: spec/nn/losses_spec.lua", arange = "no tensor comes in",
  tril_indices = "no tensor comes in", triu_indices = "no tensor comes in",
  linspace = "spec/ops/composites_spec.lua", eye = "spec/ops/composites_spec.lua",
}

for _, op in ipairs(lt.ops()) do
  if op.kind == "update" then M.except[op.name] = "spec/optim/torch_steps_spec.lua" end
end

local by_name = {}

-- Names of the ops that have cases, in the order of lt.ops(), then those written in Lua; and those
-- that have none.
function M.names()
  local have, lack = {}, {}
  for _, op in ipairs(lt.ops()) do
    local maker = OPS[op.name] or KINDS[op.kind]
    by_name[op.name] = op
    if not op.hidden and not M.except[op.name] then
      local list = maker and have or lack
      list[#list + 1] = op.name
    end
  end
  for name, place in tree.pairs(public) do
    if place:find "^ltrain%.ops%." and not M.except[name] then
      local list = OPS[name] and have or not written[name] and lack
      if list then list[#list + 1] = name end
    end
  end
  return have, lack
end

function M.draw(name)
  local op = by_name[name]
  local case = (OPS[name] or KINDS[op.kind])(op)
  if op and random() < 0.25 then integers(case, op) end
  return case
end

return M
