-- spec/xla/gradients_spec.lua: structured operations on an XLA device give the CPU's values and
-- gradients, random ones from the same bits.
-- tags: slow, sampled, unsanitized
local lt = require "ltrain"
local plugin = require "spec.xla.plugin"
local sample = require "spec.sample"

local randn <const> = lt.randn
local cases <const> = {}
local function case(name, inputs, fn)
  cases[#cases + 1] = { name = name, inputs = inputs, fn = fn }
end

lt.seed(1)
case("conv2d", { randn(2, 4, 9, 8), randn(6, 4, 3, 3), randn(6) }, function(x, w, b)
  return lt.conv2d(x, w, b, {stride = 2, padding = 1})
end)
case("conv2d groups", { randn(2, 4, 9, 8), randn(6, 2, 3, 2), randn(6) }, function(x, w, b)
  return lt.conv2d(x, w, b, {stride = 1, padding = 2, dilation = 2, groups = 2})
end)
case("conv_transpose2d", { randn(2, 4, 5, 6), randn(4, 3, 3, 3), randn(3) }, function(x, w, b)
  return lt.conv_transpose2d(x, w, b, {stride = 2, padding = 1, output_padding = 1})
end)
case("max_pool2d", { randn(2, 3, 9, 8) }, function(x)
  return lt.max_pool2d(x, 3, {stride = 2, padding = 1})
end)
case("avg_pool2d", { randn(2, 3, 9, 8) }, function(x)
  return lt.avg_pool2d(x, 2)
end)
case("adaptive", { randn(2, 3, 9, 8) }, function(x)
  return lt.adaptive_avg_pool2d(x, 1)
end)
case("batch_norm", { randn(4, 3, 5, 2), randn(3), randn(3) }, function(x, w, b)
  local y = lt.batch_norm(x, nil, nil, w, b, {training = true})
  return y
end)
case("layer_norm", { randn(4, 3, 6), randn(6), randn(6) }, function(x, w, b)
  return lt.layer_norm(x, {6}, w, b)
end)
case("rms_norm", { randn(4, 3, 6), randn(6) }, function(x, w)
  return lt.rms_norm(x, {6}, w)
end)
case("group_norm", { randn(4, 6, 5), randn(6), randn(6) }, function(x, w, b)
  return lt.group_norm(x, 2, w, b)
end)
case("cross_entropy", { randn(4, 5) }, function(x)
  return lt.cross_entropy(x, lt.tensor{ 1, 3, 0, 2 }:to(x.device), {label_smoothing = 0.1})
end)
case("cross_entropy w", { randn(4, 5, 3), randn(5):abs() }, function(x, w)
  local target = lt.tensor{ { 1, 3, 0 }, { 2, 1, 1 }, { 0, -100, 4 }, { 2, 2, 2 } }
  return lt.cross_entropy(x, target:to(x.device), w:detach())
end)
case("cross_entropy p", { randn(4, 5) }, function(x)
  return lt.cross_entropy(x, (lt.ones(4, 5)/5):to(x.device))
end)
case("embedding", { randn(6, 3) }, function(w)
  return lt.embedding(w, lt.tensor{ { 0, 5, 2 }, { 2, 2, 1 } }:to(w.device))
end)
case("gather", { randn(4, 5) }, function(x)
  return lt.gather(x, 2, lt.tensor{ { 0, 4, 2 }, { 2, 2, 1 } }:to(x.device))
end)
case("index", { randn(4, 5, 3) }, function(x)
  return x[lt.tensor{ 1, 2, 1 }:to(x.device)]
end)
case("index_select", { randn(4, 5) }, function(x)
  return x:index_select(2, lt.tensor{ 1, 3, 3 }:to(x.device))
end)
case("attention", { randn(2, 4, 5, 8), randn(2, 4, 6, 8), randn(2, 4, 6, 8) }, function(q, k, v)
  return lt.scaled_dot_product_attention(q, k, v)
end)
case("attention causal", { randn(2, 4, 5, 8), randn(2, 2, 5, 8), randn(2, 2, 5, 8) },
  function(q, k, v)
  return lt.scaled_dot_product_attention(q, k, v, {causal = true, enable_gqa = true})
end)
case("attention mask", { randn(2, 4, 5, 8), randn(2, 4, 5, 8), randn(2, 4, 5, 8), randn(5, 5) },
  function(q, k, v, m)
  return lt.scaled_dot_product_attention(q, k, v, m)
end)
case("attention dropout", { randn(2, 4, 5, 8), randn(2, 4, 5, 8), randn(2, 4, 5, 8) },
  function(q, k, v)
  lt.seed(3)
  return lt.scaled_dot_product_attention(q, k, v, {dropout_p = 0.3})
end)
case("dropout", { randn(7, 9) }, function(x)
  lt.seed(4)
  return lt.dropout(x, 0.4)
end)
case("gelu", { randn(7, 9) }, function(x)
  return lt.gelu(x)
end)
case("softmax", { randn(7, 9) }, function(x)
  return lt.softmax(x, 2)
end)
case("log_softmax", { randn(7, 9) }, function(x)
  return lt.log_softmax(x, 1)
end)
case("linear", { randn(7, 9), randn(4, 9), randn(4) }, function(x, w, b)
  return lt.linear(x, w, b)
end)
case("matmul", { randn(2, 1, 7, 9), randn(3, 9, 4) }, function(a, b)
  return a:matmul(b)
end)
case("matvec", { randn(2, 7, 9), randn(9) }, function(a, b)
  return a:matmul(b)
end)
case("cat", { randn(2, 3), randn(4, 3) }, function(a, b)
  return lt.cat({a, b, a}, 1)
end)
case("stack", { randn(2, 3), randn(2, 3) }, function(a, b)
  return lt.stack({a, b}, 2)
end)
case("where", { randn(5, 3), randn(5, 3) }, function(a, b)
  return lt.where(a:gt(b), a, b)
end)
case("cumsum", { randn(5, 3) }, function(a)
  return a:cumsum(1)
end)
case("max", { randn(5, 3) }, function(a)
  local v = a:max(2)
  return v
end)
case("amax", { randn(5, 3) }, function(a)
  return a:amax(2)
end)
case("topk", { randn(5, 8) }, function(a)
  local v = lt.topk(a, 3)
  return v
end)
case("sort", { randn(5, 8) }, function(a)
  local v = lt.sort(a, 1)
  return v
end)
case("std", { randn(5, 8) }, function(a)
  return a:std(1)
end)
case("norm", { randn(5, 8) }, function(a)
  return a:norm()
end)
case("prod", { randn(3, 4) }, function(a)
  return a:prod(2)
end)
case("tril", { randn(4, 4) }, function(a)
  return a:tril()
end)
case("flip", { randn(4, 4) }, function(a)
  return a:flip(1)
end)
case("roll", { randn(4, 4) }, function(a)
  return lt.roll(a, {1}, {2})
end)
case("pad", { randn(2, 3, 4, 4) }, function(a)
  return lt.pad(a, {1, 2, 0, 1})
end)
case("pad reflect", { randn(2, 3, 4, 4) }, function(a)
  return lt.pad(a, {1, 2, 1, 1}, {mode="reflect"})
end)
case("bce", { randn(5, 3) }, function(a)
  return lt.binary_cross_entropy_with_logits(a, lt.ones(5, 3):to(a.device))
end)
case("unfold", { randn(5, 8) }, function(a)
  return a:unfold(2, 3, 2)
end)
case("clamp", { randn(5, 8) }, function(a)
  return a:clamp(-0.5, 0.5)
end)
case("pow", { randn(5, 8):abs() }, function(a)
  return a ^ 2.5
end)
case("lerp", { randn(5), randn(5), randn(5) }, function(a, b, w)
  return lt.lerp(a, b, w)
end)
case("scatter_add", { randn(4, 5), randn(2, 3) }, function(x, s)
  return lt.scatter_add(x, 2, lt.tensor{ { 0, 4, 2 }, { 2, 2, 1 } }:to(x.device), s)
end)
case("embedding_bag", { randn(6, 3) }, function(w)
  return lt.embedding_bag(w, lt.tensor{ { 0, 5, 2 }, { 2, 2, 1 } }:to(w.device),
    {padding_idx = 5})
end)
case("embedding_bag offsets", { randn(6, 3), randn(5) }, function(w, f)
  return lt.embedding_bag(w, lt.tensor{ 0, 5, 2, 2, 1 }:to(w.device),
    {offsets = lt.tensor{ 0, 2, 2 }:to(w.device), mode = "sum", per_sample_weights = f})
end)
for _, n in ipairs { 6, 7 } do
  case("rfft " .. n, { randn(3, n) }, function(x)
    return lt.fft.rfft(x)
  end)
  case("irfft " .. n, { randn(3, 4, 2) }, function(x)
    return lt.fft.irfft(x, {n = n})
  end)
  case("fft " .. n, { randn(2, n, 2) }, function(x)
    return lt.fft.ifft(lt.fft.fft(x) * 2)
  end)
end
for _, replacement in ipairs { true, false } do
  case("multinomial " .. tostring(replacement), { lt.rand(3, 9) }, function(x)
    lt.seed(2)
    return lt.multinomial(x, 5, replacement):to("f32") * x:sum()
  end)
end
case("masked", { randn(4, 5) }, function(x)
  return x:masked_select(x:gt(0))
end)

-- The result and the gradients of the inputs.
local function run(c, device)
  local inputs = {}
  for k, x in ipairs(c.inputs) do
    inputs[k] = x:detach():clone():to(device):requires_grad_(true)
  end
  local y = c.fn(table.unpack(inputs))
  local weights = lt.arange(1, y:numel() + 1):to("f32"):sin():to(device):reshape(y.shape)
  ;(y * weights):sum():backward()
  local out = { y:detach() }
  for _, x in ipairs(inputs) do out[#out + 1] = x.grad end
  return out
end

local function distance(a, b)
  local scale = a:abs():max():item() + 1
  return (a - b:to("cpu")):abs():max():item() / scale
end

describe("on xla the CPU's values and gradients has", function()
  local results, chosen = {}, sample(cases, 4)
  setup(function() -- all are recorded before a value is read
    if plugin.missing then return end
    for _, c in ipairs(chosen) do results[c.name] = run(c, "xla") end
  end)

  for _, c in ipairs(chosen) do
    it(c.name, function()
      if plugin.missing then return pending(plugin.missing) end
      for k, want in ipairs(run(c, "cpu")) do
        local far = distance(want, results[c.name][k])
        assert.is_true(far < 2e-5, ("result %d differs by %g"):format(k, far))
      end
    end)
  end
end)
