-- spec/parity/layers.lua: random layers and losses: what PyTorch has in torch.nn.
--
-- A row is a function that returns the arguments of the constructor, its options, and the inputs of
-- a call (spec/parity/inputs.lua): one line a layer. Its parameters are drawn here; PyTorch gets
-- them by name. Where PyTorch's constructor differs, LAYERS in spec/parity/layers.py says how.
local losses = require "spec.parity.losses"
local lt = require "ltrain"
local make = require "spec.parity.inputs"
local window_layers = require "spec.parity.window_layers"

local one_of, random, shape_of = make.one_of, math.random, make.shape_of

local function x(...) return make.tensor({...}, {dtype = "f64", distinct = true}) end
local function any(least, last)
  local shape = shape_of(least, 3)
  shape[#shape + 1] = last
  return make.tensor(shape, {dtype = "f64", distinct = true})
end
local function flag() return one_of{true, false} end
local function reduction() return {reduction = one_of{"none", "mean", "sum"}} end
local function row(args, options, ...) return {args = args, options = options, inputs = {...}} end
local function plain() return row({}, {}, any(0, random(4))) end
local function with_numbers(numbers)
  return function() return row(one_of{{}, numbers}, {}, any(0, random(4))) end
end
local function instance_norm(...)
  local sizes = {...}
  return function()
    local options = {eps = 1e-3, affine = flag(), track_running_stats = flag()}
    return row({3}, options, one_of{x(2, 3, table.unpack(sizes)), x(3, table.unpack(sizes))})
  end
end
local function pair(o)
  return function()
    local shape = shape_of(1, 3, 1)
    local target = make.tensor(shape, {dtype = "f64", low = 0, high = 1})
    target.fixed = true
    return row({}, o(), make.tensor(shape, {dtype = "f64", distinct = true}), target)
  end
end
local function of_classes()
  local n, classes = random(4), random(2, 4)
  return row({}, {label_smoothing = one_of{0, 0.1}, reduction = one_of{"none", "mean", "sum"}},
    x(n, classes), make.ids({n}, classes))
end

-- Options and inputs of LSTM, GRU and RNN: x, or x and a state of so many parts.
local function recurrent(parts, o)
  o.num_layers, o.bidirectional, o.bias = random(2), flag(), flag()
  local n, input = random(0, 3), random(3)
  local layers, outputs = o.num_layers * (o.bidirectional and 2 or 1), o.proj_size or 3
  local inputs = {x(n, random(4), input)}
  if o.proj_size == 0 then outputs = 3 end
  for k = 1, one_of{0, parts} do inputs[k + 1] = x(layers, n, k == 1 and outputs or 3) end
  local r = row({input, 3}, o, table.unpack(inputs))
  r.paired = parts == 2
  return r
end
-- The same of cells: x, or x and a state.
local function cell(parts, o)
  o.bias = flag()
  local n, input = random(3), random(3)
  local inputs = {x(n, input)}
  for k = 1, one_of{0, parts} do inputs[k + 1] = x(n, 3) end
  local r = row({input, 3}, o, table.unpack(inputs))
  r.paired = parts == 2
  return r
end

local LAYERS <const> = {
  BatchNorm2d = function()
    return row({3}, {eps = 1e-3, affine = flag(), momentum = one_of{0.1, 0.5}}, x(2, 3, 2, 4))
  end,
  BatchNorm1d = function()
    return row({3}, {eps = 1e-3, affine = flag()}, one_of{x(4, 3), x(2, 3, 4)})
  end,
  BatchNorm3d = function() return row({2}, {eps = 1e-3, affine = flag()}, x(2, 2, 2, 3, 2)) end,
  GroupNorm = function()
    return row({2, 4}, {eps = 1e-3, affine = flag()}, one_of{x(2, 4, 3), x(1, 4), x(2, 4, 2, 3)})
  end,
  InstanceNorm1d = instance_norm(4), InstanceNorm2d = instance_norm(2, 3),
  InstanceNorm3d = instance_norm(2, 3, 2),
  RMSNorm = function()
    return row({{2, 4}}, {eps = one_of{1e-3, nil}, elementwise_affine = flag()}, x(3, 2, 4))
  end,
  Bilinear = function() return row({2, 3, 4}, {bias = flag()}, x(3, 2), x(3, 3)) end,
  CrossEntropyLoss = of_classes,
  Embedding = function() return row({5, 3}, {}, make.ids(shape_of(0, 2), 5)) end,
  EmbeddingBag = function()
    local o = {mode = one_of{"sum", "mean", "max"}, padding_idx = one_of{0, nil}}
    if flag() then return row({5, 3}, o, make.ids({random(3), random(3)}, 5)) end
    if o.mode == "max" then o.mode = "mean" end -- equal maxima share the gradient, in PyTorch not
    local offsets = {dtype = "i64", shape = {3}, values = {0, random(0, 2), 4}, layout = 1}
    return row({5, 3}, o, make.ids({5}, 5), offsets)
  end,
  PixelShuffle = function() return row({2}, {}, one_of{x(2, 4, 3, 2), x(8, 2, 3)}) end,
  PixelUnshuffle = function() return row({2}, {}, one_of{x(2, 2, 4, 2), x(1, 2, 6)}) end,
  ChannelShuffle = function() return row({2}, {}, one_of{x(2, 4, 3, 2), x(2, 6, 3)}) end,
  Upsample = function()
    return row({}, {scale_factor = one_of{2, 1.5}, mode = one_of{"bilinear", "bicubic"},
      align_corners = flag()}, x(2, 2, 3, 4))
  end,
  UpsamplingNearest2d = function()
    return row({}, one_of{{scale_factor = 2}, {size = {5, 3}}}, x(2, 2, 3, 4))
  end,
  UpsamplingBilinear2d = function()
    return row({}, one_of{{scale_factor = 2}, {size = {5, 3}}}, x(2, 2, 3, 4))
  end,
  Unfold = function()
    return row({{2, random(3)}}, {padding = random(0, 1), dilation = random(2)},
      one_of{x(2, 2, 4, 5), x(2, 4, 5)})
  end,
  Fold = function() return row({{4, 5}, 2}, {stride = {2, 1}}, one_of{x(2, 4, 8), x(8, 8)}) end,
  Flatten = function() return row({}, {start_dim = one_of{2, 3}}, x(2, 3, 2, 2)) end,
  GELU = function() return row({}, {approximate = one_of{"none", "tanh"}}, any(0, 3)) end,
  GRU = function() return recurrent(1, {}) end, GRUCell = function() return cell(1, {}) end,
  LSTM = function() return recurrent(2, {proj_size = random(0, 2)}) end,
  LSTMCell = function() return cell(2, {}) end,
  RNN = function() return recurrent(1, {nonlinearity = one_of{"tanh", "relu"}}) end,
  RNNCell = function() return cell(1, {nonlinearity = one_of{"tanh", "relu"}}) end,
  Identity = plain, ReLU = plain, SiLU = plain, Sigmoid = plain, Tanh = plain,
  Hardsigmoid = plain, Hardswish = plain, LogSigmoid = plain, Mish = plain, ReLU6 = plain,
  SELU = plain, Softsign = plain, Tanhshrink = plain,
  CELU = with_numbers{0.625}, ELU = with_numbers{0.625}, Hardshrink = with_numbers{0.303},
  Hardtanh = with_numbers{-0.505, 1.01}, LeakyReLU = with_numbers{0.2},
  Softplus = with_numbers{2, 0.505}, Softshrink = with_numbers{0.303},
  Threshold = function() return row({0.505, 2}, {}, any(0, 3)) end,
  PReLU = function() return one_of{row({}, {}, any(0, 3)), row({3}, {}, x(2, 3, 2))} end,
  GLU = function() return row({one_of{2, -1}}, {}, x(2, 4, 2)) end,
  SwiGLU = function() return row({one_of{2, -1}}, {}, x(2, 4, 2)) end,
  LogSoftmax = function() return row({one_of{1, -1}}, {}, any(1, 3)) end,
  Softmin = function() return row({one_of{1, -1}}, {}, any(1, 3)) end,
  LayerNorm = function() return row({4}, {eps = 1e-3}, any(0, 4)) end,
  Linear = function() return row({random(3), random(4)}, {bias = flag()}) end,
  L1Loss = pair(reduction), MSELoss = pair(reduction),
  MultiheadAttention = function()
    local q, k = random(3), random(3)
    return row({4, 2}, {bias = flag()}, x(2, q, 4), x(2, k, 4), x(2, k, 4))
  end,
  TransformerDecoderLayer = function()
    return row({4, 2}, {dim_feedforward = 6, dropout = 0, norm_first = flag()},
      x(2, random(3), 4), x(2, 2, 4))
  end,
  TransformerEncoderLayer = function()
    return row({4, 2}, {dim_feedforward = 6, dropout = 0, norm_first = flag(),
      activation = one_of{"relu", "gelu"}}, x(2, random(3), 4))
  end,
  Transformer = function()
    return row({4, 2, 1, 2, 6, 0}, {norm_first = flag(), activation = one_of{"relu", "gelu"}},
      x(2, random(3), 4), x(2, random(3), 4))
  end,
  LocalResponseNorm = function()
    return row({random(3)}, {alpha = 0.5, k = one_of{1, 2}}, x(2, 3, 4))
  end,
  PairwiseDistance = function()
    return row({one_of{2, 3}}, {keepdim = flag()}, x(2, 3), x(2, 3))
  end,
  Unflatten = function() return row({2, {2, 3}}, {}, x(2, 6, random(3))) end,
  Softmax = function() return row({one_of{1, -1}}, {}, any(1, 3)) end,
}

-- Losses whose names are not those of their functions.
local CLASSES <const> = {BCELoss = "binary_cross_entropy", KLDivLoss = "kl_div",
  BCEWithLogitsLoss = "binary_cross_entropy_with_logits", CTCLoss = "ctc_loss",
  CosineEmbeddingLoss = "cosine_embedding_loss", GaussianNLLLoss = "gaussian_nll_loss",
  NLLLoss = "nll_loss",
  PoissonNLLLoss = "poisson_nll_loss", SmoothL1Loss = "smooth_l1_loss",
  HingeEmbeddingLoss = "hinge_embedding_loss", HuberLoss = "huber_loss",
  MarginRankingLoss = "margin_ranking_loss", MultiMarginLoss = "multi_margin_loss",
  MultiLabelMarginLoss = "multilabel_margin_loss", SoftMarginLoss = "soft_margin_loss",
  MultiLabelSoftMarginLoss = "multilabel_soft_margin_loss",
  TripletMarginLoss = "triplet_margin_loss"}
for name, loss in pairs(CLASSES) do
  LAYERS[name] = function()
    local list, options = losses[loss]()
    return row({}, options, table.unpack(list))
  end
end

for name, maker in pairs(window_layers) do LAYERS[name] = maker end

local M = {}

--- Layers that are not compared, with the reason.
M.except = {
  AlphaDropout = "draws", FeatureAlphaDropout = "draws", RReLU = "draws",
  TripletMarginWithDistanceLoss = "spec/ops/dropouts_spec.lua",
  Dropout = "draws", Dropout1d = "draws", Dropout2d = "draws", Dropout3d = "draws",
  DiceLoss = "not in PyTorch: spec/nn/losses_spec.lua",
  FocalLoss = "torchvision's: spec/nn/losses_spec.lua", KVCache = "holds what attention saw",
  LearnedPositions = "not in PyTorch: spec/nn/transformer_spec.lua",
  MoE = "not in PyTorch: spec/nn/moe_spec.lua",
  RotaryPositions = "not in PyTorch: spec/nn/transformer_spec.lua",
  SinusoidalPositions = "not in PyTorch: spec/nn/transformer_spec.lua", ModuleDict = "a table",
  TransformerDecoder = "a stack of what is compared",
  TransformerEncoder = "a stack of what is compared",
  ParameterList = "a list", ParameterDict = "a table",
  SyncBatchNorm = "BatchNorm on several ranks: spec/dist/ddp_spec.lua",
  Module = "the base class", ModuleList = "a list", Sequential = "a chain",
}

--- Names of the classes of lt.nn that have a row, and of those that have none and no reason.
function M.names()
  local have, lack = {}, {}
  for _, name in pairs(lt.nn) do
    if name:find "^%u" and not M.except[name] then
      if LAYERS[name] then have[#have + 1] = "nn." .. name else lack[#lack + 1] = "nn." .. name end
    end
  end
  return have, lack
end

local function build(case)
  local arguments = {table.unpack(case.args)}
  if next(case.options) then arguments[#arguments + 1] = case.options end
  local layer = lt.nn[case.layer](table.unpack(arguments))
  return layer:to "f64"
end

--- A case: the constructor's arguments and options, the inputs, and numbers for each parameter.
function M.draw(name)
  local case = LAYERS[name:sub(4)]()
  case.layer = name:sub(4)
  if #case.inputs == 0 then case.inputs[1] = any(0, case.args[1]) end
  local layer = build(case)
  case.state = {}
  for key, p in layer:named_parameters() do
    local t = make.tensor(p.shape, {dtype = "f64", low = -1, high = 1})
    t.layout, t.key = 1, key
    case.state[#case.state + 1] = t
  end
  return case
end

--- The results of a call and its gradients: by the inputs, then by the parameters in the order of
--- `state`; buffers of floats are results too.
function M.run(case, tools)
  local layer = build(case)
  local state = layer:state_dict()
  for _, t in ipairs(case.state) do state[t.key] = tools.build(t) end
  layer:load_state_dict(state)
  local inputs = {}
  for k, t in ipairs(case.inputs) do
    inputs[k] = tools.build(t)
    if tools.differentiable(case, t) then inputs[k]:requires_grad_() end
  end
  local results = {}
  local given = case.paired and #inputs > 1 and {inputs[1], {inputs[2], inputs[3]}} or inputs
  for _, result in ipairs{layer(table.unpack(given))} do -- of an LSTM y and {h, c}
    local list = lt.is_tensor(result) and {result} or result
    table.move(list, 1, #list, #results + 1, results)
  end
  local leaves = table.move(inputs, 1, #inputs, 1, {})
  for _, t in ipairs(case.state) do leaves[#leaves + 1] = layer:get_parameter(t.key) end
  local answer = tools.answer(case, results, leaves)
  local buffers = {}
  for key, b in layer:named_buffers() do
    if b.dtype == "f64" then buffers[#buffers + 1] = key end
  end
  table.sort(buffers)
  for _, key in ipairs(buffers) do
    answer.results[#answer.results + 1] = tools.described(layer:get_buffer(key))
  end
  return answer
end

return M
