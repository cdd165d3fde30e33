-- spec/bench/gpu_side.lua: ltrain's side of ./dev bench gpu; gpu_side.py has the same cases.
local c = require "ltrain.c"
local lt = require "ltrain"
local models = require "spec.bench.torch_models"

c.runtime.default_device "cuda"
lt.seed(1)

-- Seconds of a call, the least of 7 windows of about 30 ms.
local function seconds(fn)
  local function window(n)
    lt.cuda.synchronize()
    local start = c.runtime.clock()
    for _ = 1, n do fn() end
    lt.cuda.synchronize()
    return (c.runtime.clock() - start) / n
  end
  window(5)
  local n = math.max(3, math.ceil(0.03 / window(5)))
  local best = math.huge
  for _ = 1, 7 do best = math.min(best, window(n)) end
  return best
end

local function report(name, value, unit) print(("%s %.6g %s"):format(name, value, unit)) end
local function bandwidth(name, bytes, fn) report(name, bytes / seconds(fn) / 1e9, "GB/s") end
local function flops(name, n, fn) report(name, n / seconds(fn) / 1e12, "TFLOP/s") end

local N <const> = 1 << 26
do
  local _ <close> = lt.no_grad()
  local x, y = lt.randn(N), lt.randn(N)
  bandwidth("copy_f32", 8 * N, function() return x:clone() end)
  bandwidth("add_f32", 12 * N, function() return x + y end)
  bandwidth("gelu_f32", 8 * N, function() return x:gelu() end)
  bandwidth("exp_f32", 8 * N, function() return x:exp() end)
  bandwidth("tanh_f32", 8 * N, function() return x:tanh() end)
  bandwidth("cast_bf16", 6 * N, function() return x:to "bf16" end)
  local h, g = x:to "bf16", y:to "bf16"
  bandwidth("add_bf16", 6 * N, function() return h + g end)
  bandwidth("gelu_bf16", 4 * N, function() return h:gelu() end)
  local m = x:view(8192, 8192)
  local row = lt.randn(8192)
  bandwidth("add_row_f32", 8 * N, function() return m + row end)
  bandwidth("transpose_f32", 8 * N, function() return m:t():clone { contiguous = true } end)
  bandwidth("sum_f32", 4 * N, function() return x:sum() end)
  bandwidth("sum_rows_f32", 4 * N, function() return m:sum(2) end)
  bandwidth("sum_columns_f32", 4 * N, function() return m:sum(1) end)
  local wide, narrow = x:view(65536, 1024), x:view(8192, 8192)
  bandwidth("softmax_1024_f32", 8 * N, function() return wide:softmax(2) end)
  bandwidth("softmax_8192_f32", 8 * N, function() return narrow:softmax(2) end)
  local weight, bias = lt.ones(1024), lt.zeros(1024)
  bandwidth("layer_norm_f32", 8 * N, function()
    return lt.layer_norm(wide, { 1024 }, { weight = weight, bias = bias })
  end)
  local ids = lt.randint(0, 1024, { 65536 })
  bandwidth("cross_entropy_f32", 4 * N, function() return lt.cross_entropy(wide, ids) end)
  bandwidth("dropout_f32", 8 * N, function() return lt.dropout(x, 0.1) end)
  bandwidth("rand_f32", 4 * N, function() return lt.rand(N) end)
  local table_, take = lt.randn(50257, 768), lt.randint(0, 50257, { 16384 })
  bandwidth("embedding_f32", 8 * 16384 * 768, function() return lt.embedding(table_, take) end)
  bandwidth("cat_f32", 16 * N, function() return lt.cat { x, y } end)
  local keys = lt.randn(1 << 22)
  bandwidth("sort_f32", 16 * (1 << 22), function() return keys:sort() end)
  for _, n in ipairs { 1024, 4096 } do
    local a, b = lt.randn(n, n), lt.randn(n, n)
    flops("matmul_f32_" .. n, 2 * n ^ 3, function() return a:matmul(b) end)
    local p, q = a:to "bf16", b:to "bf16"
    flops("matmul_bf16_" .. n, 2 * n ^ 3, function() return p:matmul(q) end)
  end
  local image, kernel = lt.randn(64, 64, 56, 56), lt.randn(64, 64, 3, 3)
  flops("conv_3x3_f32", 2 * 64 * 64 * 64 * 9 * 56 * 56, function()
    return lt.conv2d(image, kernel, nil, { padding = 1 })
  end)
  local q = lt.randn(16, 12, 1024, 64)
  flops("attention_causal_f32", 2 * 2 * 16 * 12 * 1024 * 1024 * 64 / 2, function()
    return lt.scaled_dot_product_attention(q, q, q, { causal = true })
  end)
  local half = q:to "bf16"
  flops("attention_causal_bf16", 2 * 2 * 16 * 12 * 1024 * 1024 * 64 / 2, function()
    return lt.scaled_dot_product_attention(half, half, half, { causal = true })
  end)
  local small = lt.randn(8)
  report("add_of_8", seconds(function() return small + small end) * 1e6, "us")
end

do -- 2 products forward, 5 backward
  local t = {}
  for k = 1, 3 do
    t[k] = lt.randn(16, 12, 1024, 64):to "bf16"
    t[k].requires_grad = true
  end
  local g = lt.randn(16, 12, 1024, 64):to "bf16"
  flops("attention_causal_bf16_both", 7 * 2 * 16 * 12 * 1024 * 1024 * 64 / 2, function()
    for k = 1, 3 do t[k].grad = nil end
    lt.scaled_dot_product_attention(t[1], t[2], t[3], { causal = true }):backward(g)
  end)
end

for _, name in ipairs { "mlp", "cnn", "gpt" } do
  local net, batch = models.net(name), models.batch(name)
  local optimizer = models.optimizer(name, net)
  local ok, why = pcall(function()
    report("step_" .. name, seconds(function()
      local loss = lt.cross_entropy(net(batch[1]), batch[2])
      optimizer:zero_grad()
      loss:backward()
      optimizer:step()
    end) * 1e6, "us")
  end)
  if not ok then print(name, why) end
end
