-- spec/parity/onnx.lua: models as ONNX files in a folder, with inputs and outputs beside them.
--
--   ltrain spec/parity/onnx.lua FOLDER
--
-- NAME.onnx, and NAME.safetensors with input_1, ..., output_1, ...; NAME_2.safetensors and so on
-- hold inputs of other sizes of the named dims, where there are such. onnx.py runs them in
-- onnxruntime.
local lt <const> = require "ltrain"
local models <const> = require "spec.onnx.models"
local nn <const> = lt.nn

local folder <const> = assert(arg[1], "usage: onnx.lua FOLDER")
local unpack <const> = table.unpack

-- A model of one function.
local function model(forward, parts)
  local M = lt.Module:extend "M"
  function M:init()
    for name, part in next, parts or {} do self[name] = part end
  end
  M.forward = forward
  return M()
end

local function write(name, m, inputs)
  local state = {}
  local _ <close> = lt.no_grad()
  for k, x in ipairs(inputs) do state["input_" .. k] = x end
  for k, y in ipairs(models.tensors(m(unpack(inputs)))) do
    state["output_" .. k] = y:clone()
  end
  lt.save(("%s/%s.safetensors"):format(folder, name), state)
end

-- Inputs of other sizes follow, with `options.dynamic_axes`.
local function case(name, m, inputs, options, ...)
  lt.onnx.export(m, inputs, ("%s/%s.onnx"):format(folder, name), options)
  m:eval()
  write(name, m, inputs)
  for k, again in ipairs { ... } do write(("%s_%d"):format(name, k + 1), m, again) end
end

local function elementwise(name, fn, ...)
  case(name, model(function(_, ...) return fn(...) end), { ... })
end

lt.seed(1)
local x <const>, y = lt.randn(3, 5), lt.randn(3, 5)
for _, op in ipairs { "neg", "abs", "sign", "square", "exp", "expm1", "sin", "cos", "tan", "atan",
                      "sinh", "cosh", "tanh", "sigmoid", "erf", "floor", "ceil", "trunc", "round",
                      "relu", "silu", "gelu", "softplus", "reciprocal", "isnan", "isfinite",
                      "logsigmoid", "mish", "selu", "relu6", "hardsigmoid", "hardswish",
                      "softsign", "tanhshrink" } do
  elementwise(op, function(v) return v[op](v) end, x)
end
for op, numbers in pairs { leaky_relu = { 0.2 }, elu = { 0.6 }, celu = { 0.6 },
                           softplus = { 2, 0.5 }, hardtanh = { -0.5, 0.7 },
                           softshrink = { 0.3 }, hardshrink = { 0.3 },
                           threshold = { 0.1, -2 } } do
  elementwise(op .. "_numbers", function(v) return v[op](v, unpack(numbers)) end, x)
end
elementwise("hardtanh_integers", function(v) return v:hardtanh(-2, 3) end, lt.randint(-9, 9, { 4 }))
elementwise("rms_norm", function(v) return lt.rms_norm(v, { 3, 5 }) end, x)
case("norms", nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.PReLU(4),
  nn.InstanceNorm2d(4), nn.RMSNorm(4, { eps = 1e-6 })), { lt.randn(2, 3, 6, 6) })
for _, op in ipairs { "log", "log1p", "log2", "log10", "sqrt", "rsqrt" } do
  elementwise(op, function(v) return v[op](v) end, x:abs() + 0.1)
end
for _, op in ipairs { "asin", "acos" } do
  elementwise(op, function(v) return v[op](v) end, x:tanh())
end
for _, op in ipairs { "add", "sub", "mul", "div", "maximum", "minimum", "remainder", "fmod",
                      "floor_divide", "eq", "ne", "lt", "le", "gt", "ge", "logical_and" } do
  elementwise(op, function(a, b) return a[op](a, b) end, x, y)
  elementwise(op .. "_integers", function(a, b) return a[op](a, b) end,
    lt.randint(-9, 9, { 4, 4 }), lt.randint(1, 5, { 4, 4 }))
end
elementwise("numbers", function(v) return (2 - v) * 3 + v / 4 - 1 // (v:abs() + 1) end, x)
elementwise("pow", function(v) return v:abs() ^ 2.5 end, x)
elementwise("clamp", function(v) return v:clamp { min = -0.5 }, v:clamp(-1, 1) end, x)
elementwise("where", function(v, w) return lt.where(v:gt(w), v, w), v:masked_fill(v:gt(0), 7) end,
  x, y)
elementwise("gelu_tanh", function(v) return v:gelu_tanh() end, x)
elementwise("mixed", function(v, n) return v + n, n:gt(0.5), n:gt(v), n / 2 end, x,
  lt.randint(-3, 3, { 3, 5 }))
elementwise("casts", function(v) return v:to "i32", (v * 10):to "u8":to "f32", v:gt(0):to "f32" end,
  x:abs())

elementwise("reductions", function(v)
  return v:sum(), v:sum(1), v:mean(2, { keepdim = true }), v:prod(1), v:amax(2),
    v:amin { dims = { 1, 2 } }
end, x)
elementwise("tests", function(v) return v:gt(1):any(), v:gt(-9):all(1) end, x)
elementwise("bits_of_bools", function(v)
  local a <const>, b = v:gt(0), v:lt(0.5)
  return a & b, a | b, a ~ b, ~a
end, x)
elementwise("extremes", function(v)
  local a, i = v:max(1)
  local b, j = v:min(2, { keepdim = true })
  return a, i, b, j, v:argmax(), v:argmin(2)
end, x)
elementwise("statistics", function(v) return v:var(1), v:std(2), v:logsumexp(1), v:norm() end, x)
elementwise("gates", function(v, w) return v:glu(2), v:swiglu(2), v:prelu(w), v:softmin(1) end,
  lt.randn(3, 6), lt.tensor { 0.2 })
elementwise("norms", function(v, w)
  return v:rms_norm({ 4, 4 }), v:rms_norm({ 4 }, { weight = w }), v:group_norm(2),
    (v:instance_norm())
end, lt.randn(2, 4, 4, 4), lt.randn(4))
elementwise("scans", function(v) return v:cumsum(2) end, x)
elementwise("views", function(v)
  return v:view(5, 3), v:t(), v:permute(2, 1):reshape(15), v:unsqueeze(1):expand(2, 3, 5),
    v:flatten()
end, x)
elementwise("slices", function(v)
  return v[2], v[{ 2, 3 }], v:narrow(2, 2, 3), v:slice(2, 1, -1, 2), v:select(2, 3), v:diagonal(),
    v:flip(1), v:select(2, 1), v:unfold(2, 3, 1), v:roll(1, 2)
end, x)
elementwise("joins", function(a, b) return lt.cat({ a, b }, 2), lt.stack({ a, b }, 1) end, x, y)
elementwise("choices", function(v, ids)
  return v:index_select(2, ids), v:gather(1, ids:view(1, 2):remainder(3):expand(3, 2)), v:tril(),
    v:triu(1), (v:topk(2, { dim = 2 })), ids:one_hot { num_classes = 6 }
end, x, lt.tensor({ 4, 0 }, { dtype = "i64" }))
elementwise("products", function(a, b) return a:matmul(b:t()), a[1]:dot(b[1]), a:matmul(b[1]) end,
  x, y)
elementwise("softmaxes", function(v) return v:softmax(1), v:log_softmax(2) end, x)
elementwise("writes", function(v)
  local z = lt.zeros(3, 5)
  z:add_(v)
  z:mul_(2)
  return z, v:detach() * 3
end, x)
for k, options in ipairs { {}, { causal = true }, { scale = 0.3 } } do
  elementwise("attention_" .. k, function(q, k1, v)
    return q:scaled_dot_product_attention(k1, v, options)
  end, lt.randn(2, 4, 6, 8), lt.randn(2, 4, 6, 8), lt.randn(2, 4, 6, 8))
end
elementwise("attention_mask", function(q, k, v, mask)
  return q:scaled_dot_product_attention(k, v, { mask = mask, enable_gqa = true })
end, lt.randn(2, 4, 6, 8), lt.randn(2, 2, 6, 8), lt.randn(2, 2, 6, 8), lt.rand(6, 6):gt(0.4))

elementwise("interpolations", function(v, w, u)
  return v:interpolate { scale_factor = 2 },
    v:interpolate { size = { 5, 7 }, mode = "nearest-exact" },
    v:interpolate { scale_factor = 2, mode = "bilinear" },
    v:interpolate { size = 3, mode = "bilinear", antialias = true },
    v:interpolate { size = { 7, 9 }, mode = "bicubic", align_corners = true },
    w:interpolate { scale_factor = 1.5, mode = "linear" },
    u:interpolate { size = 3, mode = "area" },
    u:interpolate { size = 5, mode = "trilinear" }
end, lt.randn(2, 3, 4, 5), lt.randn(2, 3, 6), lt.randn(1, 2, 3, 4, 6))
elementwise("pixels", function(v)
  return v:pixel_shuffle(2), v:pixel_unshuffle(2), v:channel_shuffle(2)
end, lt.randn(2, 8, 4, 6))
for _, mode in ipairs { "bilinear", "nearest", "bicubic" } do
  for _, padding_mode in ipairs { "zeros", "border", "reflection" } do
    elementwise(("grid_sample_%s_%s"):format(mode, padding_mode), function(v, theta)
      local grid <const> = theta:affine_grid { 2, 3, 3, 4 }
      return v:grid_sample(grid, { mode = mode, padding_mode = padding_mode })
    end, lt.randn(2, 3, 4, 5), lt.randn(2, 2, 3))
  end
end
for _, mode in ipairs { "sum", "mean", "max" } do
  elementwise("embedding_bag_" .. mode, function(w, ids_)
    return w:embedding_bag(ids_, { mode = mode, padding_idx = 1 })
  end, lt.randn(6, 3), lt.randint(0, 6, { 3, 4 }))
end
for _, mode in ipairs { "sum", "mean" } do
  elementwise("embedding_bag_offsets_" .. mode, function(w, ids_, offsets)
    return w:embedding_bag(ids_, { mode = mode, padding_idx = 1, offsets = offsets })
  end, lt.randn(6, 3), lt.randint(0, 6, { 7 }), lt.tensor({ 0, 2, 2, 7 }, { dtype = "i64" }))
end

local batch <const> = { dynamic_axes = { input = { [1] = "batch" } } }
case("mlp", nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.LayerNorm(7), nn.Dropout(0.5),
  nn.Linear(7, 3), nn.Softmax(2)), { x }, batch, { lt.randn(1, 5) })
local norm <const> = nn.BatchNorm2d(4)
norm.running_mean:copy_(lt.randn(4))
norm.running_var:copy_(lt.rand(4) + 0.5)
case("convolutions", nn.Sequential(nn.Conv2d(3, 4, 3, { padding = 1, stride = 2 }), norm, nn.ReLU(),
  nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, { padding = 2, dilation = 2, groups = 2 }), nn.Flatten(),
  nn.Linear(64, 10)), { lt.randn(2, 3, 16, 16) }, batch, { lt.randn(5, 3, 16, 16) })
case("dynamic_parts", model(function(_, v)
  return v:slice(2, 2, -1), v:narrow(2, 1, 3), v:select(2, 2), v[{ 1, { 2, 3 } }], v[1]
end), { lt.randn(2, 4, 3) }, { dynamic_axes = { input = { "batch", "length" } } },
  { lt.randn(3, 7, 3) })
case("embedding", nn.Sequential(nn.Embedding(10, 6), nn.Linear(6, 2)),
  { lt.randint(0, 10, { 2, 4 }) }, { dynamic_axes = { input = { "batch", "length" } } },
  { lt.randint(0, 10, { 3, 9 }) })
local layer <const> = nn.TransformerEncoderLayer(8, 2, { dim_feedforward = 16 })
case("transformer", nn.TransformerEncoder(layer, 2), { lt.randn(2, 5, 8) }, batch,
  { lt.randn(4, 5, 8) })

-- Recurrent layers, with what they return beside y.
local function recurrent(name, net)
  net:eval()
  case(name, model(function(m, x_)
    local y_, state = m.net(x_)
    if type(state) == "table" then return y_, state[1], state[2] end
    return y_, state
  end, { net = net }), { lt.randn(3, 5, 4) }, batch, { lt.randn(6, 5, 4) })
end
recurrent("lstm", nn.LSTM(4, 6, { num_layers = 2, bidirectional = true }))
recurrent("gru", nn.GRU(4, 6, { bidirectional = true }))
recurrent("rnn", nn.RNN(4, 6, { nonlinearity = "relu" }))
recurrent("rnn_tanh", nn.RNN(4, 6, { bias = false }))
case("lstm_lengths", model(function(m, x_, n_)
  local y_, state = m.net(x_, nil, { lengths = n_ })
  return y_, state[1], state[2]
end, { net = nn.LSTM(4, 6, { bidirectional = true }) }),
  { lt.randn(3, 5, 4), lt.tensor({ 5, 2, 3 }, { dtype = "i64" }) })

for _, each in ipairs(models.cases()) do
  case("model_" .. each.name, each.model, each.samples[1], { dynamic_axes = each.axes },
    unpack(each.samples, 2))
end

-- What depends on the sizes of named dims.
local image <const> = lt.randn(2, 3, 6, 7)
local function resized(name, fn, axes, ...) -- the samples of one input
  local samples = {}
  for k, v in ipairs { ... } do samples[k] = { v } end
  case(name, model(function(_, v) return fn(v) end), samples[1],
    { dynamic_axes = { input = axes } }, unpack(samples, 2))
end
local by_batch <const>, by_sides = { "batch" }, { "batch", [3] = "height", [4] = "width" }
for _, sample in ipairs { { "", image }, { "_of_one", image:narrow(1, 1, 1) } } do
  local suffix <const>, first, other = sample[1], sample[2], lt.randn(5, 3, 9, 8)
  local same_sides <const> = other:narrow(3, 1, 6):narrow(4, 1, 7)
  resized("parts" .. suffix, function(v)
    return v:select(2, 1), v:select(2, -1), v[1], v:narrow(2, 2, 2), v:flip(3), v:flip(1, 4),
      v:select(1, -1), v:diagonal(0, 3, 4), v:diagonal(1, 2, 4), v:slice(3, 1, -1, 2),
      v:narrow(2, 2, 1)
  end, by_batch, first, same_sides)
  resized("parts_by_sides" .. suffix, function(v)
    return v:select(4, -1), v:slice(3, 2, -2), v:narrow(4, 1, v.shape[4] - 2), v:flip(4),
      v:narrow(3, v.shape[3] - 1, 2), v:flatten(3), v:transpose(2, 3):reshape(-1, 3, v.shape[4]),
      v:roll(1, 3), v:sum(4) / v.shape[4]
  end, by_sides, first, other)
  resized("strides" .. suffix, function(v)
    local pooled <const> = v:avg_pool2d(4, { stride = 4 })
    return pooled:flatten(3), pooled + lt.arange(pooled.shape[4]), v:slice(3, 1, -1, 2),
      v:slice(4, 2, -1, 2), v:mean { 3, 4 }, v:var { 3, 4 }, v:std(1, { correction = 0 }),
      (v:sort(3)), (v:max_pool2d(3, { stride = 2, padding = 1 })):flatten(2)
  end, by_sides, first, other, lt.randn(2, 3, 21, 33))
  resized("paddings" .. suffix, function(v)
    return v:pad { 1, 2 }, v:pad({ 1, 0, 2, 1 }, { value = 0.5 }), v:pad { 0, 0, -1, 1 },
      v:pad({ 1, 2, 1, 1 }, { mode = "reflect" }), v:pad({ 1, 2 }, { mode = "replicate" }),
      v:pad({ 2, 1, 1, 1 }, { mode = "circular" })
  end, by_sides, first, other)
  resized("interpolations" .. suffix, function(v)
    local function of(options) return v:interpolate(options) end
    return of { scale_factor = 2, mode = "bilinear" }, of { scale_factor = 2, mode = "bicubic" },
      of { scale_factor = { 1.5, 0.5 }, mode = "bilinear" }, of { size = 5, mode = "bilinear" },
      of { scale_factor = 2, mode = "bilinear", align_corners = true },
      of { scale_factor = 3 }, of { scale_factor = 2, mode = "nearest-exact" },
      v:mean(4):interpolate { scale_factor = 1.5, mode = "linear" },
      v:unsqueeze(2):interpolate { scale_factor = 2, mode = "trilinear" },
      of { size = { 2 * v.shape[3] + 1, v.shape[4] }, mode = "bicubic", align_corners = true }
  end, by_sides, first, other)
  resized("instance_norm" .. suffix, function(v) return v:instance_norm() end, by_batch, first,
    same_sides)
  resized("counted" .. suffix, function(v)
    local n <const> = v.shape[4]
    return v + lt.arange(n), v * lt.arange(1, 2 * n, 2), lt.ones(n, n):tril() * 2,
      lt.ones(n + 1) * 2, lt.zeros(v.shape[1] * n) + 1, lt.ones(2 * n - 1) * 3
  end, by_sides, first, other)
end
case("zero_pad", nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(3, 4, 4, { padding = "same" }),
  nn.InstanceNorm2d(4, { affine = true })), { image }, batch, { lt.randn(5, 3, 6, 7) })
case("affine_grid", model(function(_, v, theta)
  return v:grid_sample(theta:affine_grid { v.shape[1], 3, 4, 5 })
end), { lt.randn(1, 3, 4, 5), lt.randn(1, 2, 3) },
  { dynamic_axes = { input_1 = { "n" }, input_2 = { "n" } } },
  { lt.randn(3, 3, 4, 5), lt.randn(3, 2, 3) })
local function lengths_of(...) return lt.tensor({ ... }, { dtype = "i64" }) end
case("gru_lengths", model(function(m, v, n)
  local y_, state = m.net(v, nil, { lengths = n })
  return y_, state
end, { net = nn.GRU(4, 6) }), { lt.randn(1, 5, 4), lengths_of(3) },
  { dynamic_axes = { input_1 = { "batch" }, input_2 = { "batch" } } },
  { lt.randn(4, 5, 4), lengths_of(5, 1, 2, 4) })
local function keys_of(n, t) return lt.arange(t):lt(lt.arange(n):view(-1, 1) + 2) end
case("encoder_masked", model(function(m, v, keys)
  return m.net(v, { key_mask = keys })
end, { net = nn.TransformerEncoder(layer, 2) }), { lt.randn(1, 5, 8), keys_of(1, 5) },
  { dynamic_axes = { input_1 = { "batch", "length" }, input_2 = { "batch", "length" } } },
  { lt.randn(4, 9, 8), keys_of(4, 9) }, { lt.randn(2, 3, 8), keys_of(2, 3) })
case("decoder", model(function(m, v, memory)
  return m.net(v, memory, { causal = true })
end, { net = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 1) }),
  { lt.randn(1, 5, 8), lt.randn(1, 4, 8) },
  { dynamic_axes = { input_1 = { "batch", "length" }, input_2 = { "batch", "memory" } } },
  { lt.randn(3, 7, 8), lt.randn(3, 2, 8) }, { lt.randn(2, 1, 8), lt.randn(2, 9, 8) })
local last <const> = nn.LSTM(4, 6)
case("lstm_last", model(function(m, v) return (m.net(v)):select(2, -1) end, { net = last }),
  { lt.randn(1, 5, 4) }, { dynamic_axes = { input = { "batch", "length" } } },
  { lt.randn(3, 9, 4) })
for _, name in ipairs { "LearnedPositions", "SinusoidalPositions" } do
  local layer_ <const> = name == "LearnedPositions" and nn[name](12, 4)
    or nn[name](4, { max_length = 12 })
  case(name, layer_, { lt.randn(1, 3, 4) },
    { dynamic_axes = { input = { "batch", "length" } } }, { lt.randn(2, 12, 4) })
end
case("upsampling", nn.Sequential(nn.Upsample { scale_factor = 2, mode = "bilinear" },
  nn.Conv2d(2, 8, 3), nn.PixelShuffle(2), nn.UpsamplingNearest2d { scale_factor = 2 },
  nn.UpsamplingBilinear2d { size = { 9, 7 } }), { lt.randn(2, 2, 5, 6) }, batch,
  { lt.randn(3, 2, 5, 6) })
case("windows", nn.Sequential(nn.Conv1d(2, 4, 3, { padding = "same" }),
  nn.ConvTranspose1d(4, 2, 3, { stride = 2, output_padding = 1 }), nn.AvgPool1d(2),
  nn.MaxPool1d(3, { dilation = 2, stride = 2, ceil_mode = true }), nn.AdaptiveAvgPool1d(1)),
  { lt.randn(2, 2, 12) }, batch, { lt.randn(3, 2, 12) })
