-- spec/ops/cases.lua: a call of every structured row of lt.ops(): small inputs and options.
local c = require "ltrain.c"
local by_name = require "spec.ops.by_name"
local lt = require "ltrain"

local M = {}

-- Distinct values without symmetry, no two equal, none near a kink of max or abs.
local function values(...)
  local shape, n = {...}, 1
  for _, size in ipairs(shape) do n = n * size end
  local list = {}
  for i = 1, n do list[i] = 2 * ((i * 0.6180339887498949 + 0.137 * #shape) % 1) - 1 end
  return lt.tensor(list, {dtype = "f64"}):reshape(table.unpack(shape))
end
M.values = values

local function ids(list) return lt.tensor(list) end
local function positive(...) return values(...) * 0.4 + 0.6 end

local signs <const> = lt.tensor{1, -1, 1}

local FIRST <const> = 1 -- only the first result is differentiable

M.structured = {
  clone = {{values(3, 4)}}, clamp = {{values(3, 4)}, {min = -0.5, max = 0.7}},
  isclose = {{values(3, 4), values(4)}}, nan_to_num = {{values(3, 4)}},
  lerp = {{values(3, 4), values(4), positive(3, 1)}},
  addcmul = {{values(3, 4), values(4), values(3, 1)}, {value = 2}},
  addcdiv = {{values(3, 4), values(4), positive(3, 1) + 1}, {value = 2}},
  prelu = {{values(2, 3, 4), values(3)}}, glu = {{values(3, 4)}, {dim = 2}},
  swiglu = {{values(3, 4)}}, softmin = {{values(3, 4)}, {dim = 1}},
  bitwise_not = {{ids{3, 0, 7}}}, normalize = {{values(3, 4)}, {dim = 2}},
  cosine_similarity = {{values(3, 4), values(4)}, {dim = 2}},
  count_nonzero = {{values(3, 4)}, {dims = 1}}, nansum = {{values(3, 4)}, {dims = 2}},
  nanmean = {{values(3, 4)}, {dims = 2}}, var_mean = {{values(3, 4)}, {dims = 1}, FIRST},
  std_mean = {{values(3, 4)}, {dims = 2}, FIRST}, aminmax = {{values(3, 4)}, {dim = 2}, FIRST},
  median = {{values(3, 5)}, {dim = 2}, FIRST}, nanmedian = {{values(3, 4)}, {dim = 1}, FIRST},
  mode = {{values(3, 4)}, {dim = 2}, FIRST},
  quantile = {{values(3, 5), lt.tensor({0.3, 0.8}, {dtype = "f64"})}, {dim = 2}},
  cumprod = {{values(3, 4)}, {dim = 2}}, logcumsumexp = {{values(3, 4)}, {dim = 1}},
  cummax = {{values(3, 4)}, {dim = 2}, FIRST}, cummin = {{values(3, 4)}, {dim = 1}, FIRST},
  broadcast_to = {{values(3, 1)}, {size = {2, 3, 4}}}, tile = {{values(3, 2)}, {dims = {2, 1, 3}}},
  repeat_interleave = {{values(3, 4), ids{2, 0, 3}}, {dim = 1}},
  roll = {{values(3, 4)}, {shifts = {1, -1}, dims = {1, 2}}}, rot90 = {{values(3, 4)}},
  unfold = {{values(3, 6)}, {dim = 2, size = 3, step = 2}},
  im2col = {{values(2, 2, 4, 5)}, {kernel_size = {2, 3}, padding = 1, stride = 2}},
  col2im = {{values(2, 12, 9)},
    {output_size = {4, 5}, kernel_size = {2, 3}, padding = 1, stride = 2}},
  diagonal = {{values(3, 4)}, {offset = 1}}, diag = {{values(3)}, {diagonal = -1}},
  bmm = {{values(2, 3, 4), values(2, 4, 2)}},
  baddbmm = {{values(3, 1), values(2, 3, 4), values(2, 4, 2)}, {alpha = 2}},
  dot = {{values(4), values(4) * 0.5}}, kron = {{values(2, 3), values(2)}},
  cdist = {{values(3, 2), values(4, 2) + 3}},
  scatter = {{values(3, 4), ids{{0, 3}, {1, 2}, {2, 0}}, values(3, 2)}, {dim = 2}},
  scatter_reduce = {{values(3, 4), ids{{0, 0}, {1, 2}, {2, 0}}, values(3, 2)},
    {dim = 2, reduce = "prod"}},
  index_reduce = {{values(4, 3), ids{2, 0, 2}, values(3, 3)}, {dim = 1, reduce = "mean"}},
  take_along_dim = {{values(3, 4), ids{{0, 3}}}, {dim = 2}},
  masked_scatter = {{values(3, 4), values(3, 4):gt(0), values(12) * 0.5}},
  unique = {{values(3, 4)}}, unique_consecutive = {{values(3, 4)}},
  bincount = {{ids{0, 3, 1, 3}}},
  searchsorted = {{lt.tensor{-0.5, 0.1, 0.6}, values(3, 4):to("f32")}},
  bucketize = {{values(3, 4):to("f32"), lt.tensor{-0.5, 0.1, 0.6}}},
  sum = {{values(3, 4, 2)}, {dims = {1, 3}}},
  mean = {{values(3, 4, 2)}, {dims = 2, keepdim = true}},
  prod = {{values(3, 4)}, {dims = 1}}, amax = {{values(3, 4)}, {dims = {1, 2}}},
  amin = {{values(3, 4)}, {dims = 2}}, any = {{values(3, 4):gt(0.9)}, {dims = 1}},
  all = {{values(3, 4):gt(-0.9)}, {dims = 1}}, logsumexp = {{values(3, 4)}, {dims = 2}},
  var = {{values(3, 4)}, {dims = 2}}, std = {{values(3, 4)}, {dims = 1, correction = 0}},
  norm = {{values(3, 4)}, {dims = 2}}, argmax = {{values(3, 4)}, {dim = 2}},
  argmin = {{values(3, 4)}, {dim = 1}}, max = {{values(3, 4)}, {dim = 2}},
  min = {{values(3, 4)}, {dim = 1}}, cumsum = {{values(3, 4)}, {dim = 1}},
  softmax = {{values(3, 5)}, {dim = -1}}, log_softmax = {{values(3, 5)}, {dim = 1}},
  cross_entropy = {{values(4, 5), ids{1, 0, 4, 2}}},
  mse_loss = {{values(3, 4), values(3, 4) * 0.5}},
  l1_loss = {{values(3, 4), values(3, 4) * 0.5}},
  binary_cross_entropy_with_logits = {{values(3, 4), positive(3, 4)}},
  binary_cross_entropy = {{positive(3, 4), values(3, 4):sigmoid()}},
  nll_loss = {{values(4, 5), ids{1, 0, 4, 2}, positive(5)}},
  smooth_l1_loss = {{values(3, 4), values(3, 4) * 0.5}, {beta = 0.3}},
  huber_loss = {{values(3, 4), values(3, 4) * 0.5}, {delta = 0.3}},
  sigmoid_focal_loss = {{values(3, 4), positive(3, 4)}},
  kl_div = {{values(3, 4), positive(3, 4)}, {reduction = "batchmean"}},
  poisson_nll_loss = {{values(3, 4), positive(3, 4) * 3}, {full = true}},
  gaussian_nll_loss = {{values(3, 4), values(3, 4) * 0.5, positive(3)}, {full = true}},
  dice_loss = {{positive(2, 2, 3), values(2, 2, 3):square()}},
  soft_margin_loss = {{values(3, 4), values(3, 4):sign():to "i64"}},
  hinge_embedding_loss = {{values(3, 4), values(3, 4):sign():to "i64"}, {margin = 0.4}},
  cosine_embedding_loss = {{values(3, 4), positive(3, 4), signs}},
  margin_ranking_loss = {{values(3, 4), positive(3, 4), values(3, 4):sign():to "i64"}},
  triplet_margin_loss =
    {{values(3, 4), positive(3, 4), values(3, 4) * 0.3}, {swap = true, margin = 4}},
  multilabel_soft_margin_loss = {{values(3, 4), positive(3, 4)}},
  multilabel_margin_loss = {{values(2, 3), ids{{2, -1, 0}, {0, 1, -1}}}},
  multi_margin_loss = {{values(3, 4), ids{1, 0, 3}}, {p = 2}},
  layer_norm = {{values(3, 6), values(6), values(6)}, {normalized_shape = {6}}},
  rms_norm = {{values(3, 6), values(6)}, {normalized_shape = {6}, eps = 1e-5}},
  group_norm = {{values(2, 4, 3), values(4), values(4)}, {num_groups = 2}},
  instance_norm = {{values(2, 3, 2, 2), values(3), values(3)}, nil, FIRST},
  batch_norm = {{values(4, 3, 2, 2), values(3), values(3)}, nil, FIRST},
  view = {{values(3, 4)}, {size = {2, 6}}}, reshape = {{values(3, 4)}, {size = {-1, 2}}},
  permute = {{values(2, 3, 4)}, {dims = {3, 1, 2}}}, expand = {{values(3, 1)}, {size = {2, 3, 4}}},
  transpose = {{values(3, 4)}, {dim0 = 1, dim1 = 2}}, t = {{values(3, 4)}},
  squeeze = {{values(3, 1, 2)}}, unsqueeze = {{values(3, 4)}, {dim = 2}},
  flatten = {{values(2, 3, 4)}, {start_dim = 2}}, flip = {{values(3, 4)}, {dims = 2}},
  movedim = {{values(2, 3, 4)}, {source = 1, destination = 3}},
  select = {{values(3, 4)}, {dim = 2, index = -1}},
  narrow = {{values(3, 4)}, {dim = 2, start = 2, length = 2}},
  slice = {{values(3, 7)}, {dim = 2, from = 2, to = 6, step = 2}},
  index_select = {{values(4, 3), ids{2, 0, 2}}, {dim = 1}},
  index_add = {{values(4, 3), ids{2, 0, 2}, values(3, 3)}, {dim = 1}},
  gather = {{values(3, 4), ids{{0, 3}, {1, 1}, {2, 0}}}, {dim = 2}},
  scatter_add = {{values(3, 4), ids{{0, 3}, {1, 1}, {2, 0}}, values(3, 2)}, {dim = 2}},
  embedding = {{values(5, 3), ids{{1, 4}, {1, 0}}}},
  masked_fill = {{values(3, 4), values(3, 4):gt(0)}, {value = 2}},
  where = {{values(3, 4):gt(0), values(3, 4), values(4)}},
  tril = {{values(4, 4)}}, triu = {{values(2, 3, 4)}, {diagonal = 1}},
  masked_select = {{values(3, 4), values(3, 4):gt(0)}},
  topk = {{values(3, 5)}, {k = 2}}, sort = {{values(3, 5)}, {dim = 2, descending = true}},
  argsort = {{values(3, 5)}}, one_hot = {{ids{1, 0, 3}}}, nonzero = {{values(3, 4):gt(0)}},
  matmul = {{values(2, 3, 4), values(4, 5)}}, linear = {{values(2, 3, 4), values(5, 4), values(5)}},
  outer = {{values(3), values(4)}}, addmm = {{values(5), values(3, 4), values(4, 5)}},
  pad = {{values(2, 3, 4)}, {pad = {1, 2, -1, 1}, mode = "replicate"}},
  scaled_dot_product_attention =
    {{values(2, 5, 4), values(2, 5, 4) * 0.7, values(2, 5, 4) * 0.9}, {causal = true}},
  lstm_layer = {{values(3, 2, 4), values(12, 4), values(12, 3) * 0.7, values(12), values(12) * 0.5,
    values(2, 3), values(2, 3) * 0.3}, {reverse = true}, FIRST},
  gru_layer = {{values(3, 2, 4), values(9, 4), values(9, 3) * 0.7, values(9), values(9) * 0.5,
    values(2, 3)}, nil, FIRST},
  rnn_layer = {{values(3, 2, 4), values(3, 4), values(3, 3) * 0.7, values(3), values(3) * 0.5,
    values(2, 3)}, nil, FIRST},
  cat = {{{values(2, 3), values(1, 3)}}, {dim = 1}}, stack = {{{values(2, 3), positive(2, 3)}}},
}

-- Windows of 1, 2 and 3 dims.
for n = 1, 3 do
  local function images(channels, size, ...)
    local shape = {channels, ...}
    for _ = 1, n do shape[#shape + 1] = size end
    return values(table.unpack(shape))
  end
  local name, places = n .. "d", {}
  for k = 1, 2 << n do places[k] = (3 * k) % (1 << n) end
  local all = {}
  for k = 1, n do all[k] = 2 end
  local rows = {
    conv = {{images(1, n == 3 and 3 or 5, 2), images(3, 2, 2), values(3)},
      {stride = 2, padding = 1, dilation = n == 3 and 1 or 2, groups = 1}},
    conv_transpose = {{images(1, 3, 2), images(2, 2, 1), values(2)},
      {stride = 2, padding = 1, output_padding = 1, groups = 2}},
    max_pool = {{images(1, 4, 2)}, {kernel_size = 2, dilation = 2, padding = 1}},
    avg_pool = {{images(1, 4, 2)},
      {kernel_size = 3, stride = 2, padding = 1, ceil_mode = true, count_include_pad = false}},
    lp_pool = {{images(1, 4, 2):abs() + 0.5}, {norm_type = 3, kernel_size = 2}},
    adaptive_avg_pool = {{images(1, 4, 2)}, {output_size = 3}},
    adaptive_max_pool = {{images(1, 4, 2)}, {output_size = 3}},
    max_unpool = {{images(1, 2, 2), ids(places):reshape(1, 2, table.unpack(all))},
      {kernel_size = 2}},
  }
  for kind, row in pairs(rows) do M.structured[kind .. name] = row end
end

M.float = {f32 = true, f64 = true, f16 = true, bf16 = true}

-- The inputs as a flat list; a list op gets them back as one table.
function M.inputs_of(case)
  local first = case[1][1]
  if type(first) == "table" then return first, true end
  return case[1], false
end

function M.run(op, inputs, is_list, options)
  if is_list then return {lt[op.name](inputs, options)} end
  local arguments = by_name(op.name, inputs, options)
  local method = inputs[1][op.name] -- lt.all is the index that means "all"; x:all() the reduction
  return {method(table.unpack(arguments))}
end

function M.changed(inputs, f)
  local out = {}
  for i, x in ipairs(inputs) do out[i] = M.float[x.dtype] and f(x) or x end
  return out
end

--- The device that specs run on; nil: the CPU.
local here <const> = lt.zeros(1).device
M.device = here ~= "cpu" and here or nil

--- What fn gives of copies of the inputs on the CPU, where all that it makes is, too: another
--- device is compared with that, which takes it a fraction of the work of finite differences.
function M.on_cpu(inputs, fn)
  local list = {}
  for i, x in ipairs(inputs) do list[i] = x:detach():to "cpu" end
  c.runtime.default_device "cpu"
  local result = table.pack(pcall(fn, list))
  c.runtime.default_device(here)
  assert(result[1], result[2])
  return table.unpack(result, 2, result.n)
end

function M.weighted(results, last) -- a number that every floating result moves
  local total
  for k, y in ipairs(results) do
    if M.float[y.dtype] and k <= (last or k) then
      local weights = (lt.arange(1, y:numel() + 1):to("f64") * 0.37 + k):sin():reshape(y.shape)
      local part = (y:to("f64") * weights):sum()
      total = total and total + part or part
    end
  end
  return total
end

return M
