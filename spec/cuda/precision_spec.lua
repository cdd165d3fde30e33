-- spec/cuda/precision_spec.lua: TF32 and bf16 are used where the script says so and nowhere else.
--
-- The fakes of NVIDIA's libraries round factors as TF32 does when they are asked for it.
local both = require "spec.cuda.both"
local lt = require "ltrain"

local FINE <const>, ROUNDED <const> = 1 + 2 ^ -12, 1.0 -- a factor, and what TF32 keeps of it

local function product(dtype)
  local x = lt.full({ 2, 3 }, FINE):to(dtype):to "cuda"
  return x:matmul(lt.ones({ 3, 1 }, { device = "cuda" }):to(dtype)):to("cpu")[1][1]:item() / 3
end

local function convolution()
  local x = lt.full({ 2, 1, 3, 3 }, FINE):to "cuda"
  return lt.conv2d(x, lt.ones({ 1, 1, 1, 1 }, { device = "cuda" })):to("cpu"):max():item()
end

local function attention()
  local x = lt.full({ 1, 1, 2, 4 }, FINE):to "cuda"
  return lt.scaled_dot_product_attention(x, x, x):to("cpu"):max():item()
end

local function with(precision, fn)
  local before = lt.get_float32_matmul_precision()
  lt.set_float32_matmul_precision(precision)
  local value = fn()
  lt.set_float32_matmul_precision(before)
  return value
end

describe("lt.set_float32_matmul_precision on cuda", function()
  both.it("leaves products of f32 in f32", function()
    for _, fn in ipairs { product, convolution, attention } do
      assert.equal(FINE, fn "f32")
      assert.equal(FINE, with("highest", function() return fn "f32" end))
    end
  end)

  both.it("lets products, convolutions and attention of f32 use TF32 by 'high'", function()
    for _, fn in ipairs { product, convolution, attention } do
      assert.equal(ROUNDED, with("high", function() return fn "f32" end))
      assert.equal(FINE, fn "f32")
    end
  end)

  both.it("lets products of f32 use bf16 by 'medium', convolutions and attention TF32", function()
    local coarse <const> = 1 + 2 ^ -9 -- TF32 keeps it, bf16 does not
    local value = with("medium", function()
      local x = lt.full({ 2, 3 }, coarse):to "cuda"
      return x:matmul(lt.ones({ 3, 1 }, { device = "cuda" })):to("cpu")[1][1]:item() / 3
    end)
    assert.equal(1.0, value)
    for _, fn in ipairs { product, convolution, attention } do
      assert.equal(ROUNDED, with("medium", function() return fn "f32" end))
    end
  end)

  both.it("leaves f64 as it is", function()
    assert.equal(FINE, with("high", function() return product "f64" end))
  end)
end)

describe("Trainer{matmul_precision} on cuda", function()
  local function fit(precision)
    local Net <const> = lt.Module:extend "Net"
    function Net:init() self.layer = lt.nn.Linear(2, 1) end
    function Net:training_step(batch)
      self.seen, self.set = product "f32", lt.get_float32_matmul_precision()
      return self.layer(batch):mean()
    end
    function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
    local net = Net()
    lt.Trainer {
      accelerator = "cuda", devices = 1, max_epochs = 1, logger = false,
      enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
      matmul_precision = precision,
    }:fit(net, { lt.ones(4, 2) })
    return net
  end

  both.it("holds while the Trainer runs", function()
    local net = fit "high"
    assert.same({ "high", ROUNDED }, { net.set, net.seen })
    assert.equal("highest", lt.get_float32_matmul_precision())
    net = fit(nil)
    assert.same({ "highest", FINE }, { net.set, net.seen })
  end)

  both.it("goes before what the script has set, which holds without it", function()
    assert.equal(FINE, with("high", function() return fit("highest").seen end))
    assert.equal(ROUNDED, with("high", function() return fit(nil).seen end))
  end)
end)
