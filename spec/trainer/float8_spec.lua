-- spec/trainer/float8_spec.lua: precision = "fp8-mixed" and Transformer Engine's: nn.Linear in
-- float8, with scales from the steps before.
local DelayedScaling = require "ltrain.strategies.float8.DelayedScaling"
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn
local tiny = require "spec.trainer.tiny"

local Net <const> = lt.Module:extend("Net")

function Net:init()
  lt.seed(3)
  self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.GELU(),
    nn.Linear(16, 1))
end

function Net:training_step(batch)
  local loss = lt.mse_loss(self.layers(batch[1]):float(), batch[2])
  return loss
end
Net.validation_step = Net.training_step

function Net:configure_optimizers() return lt.optim.AdamW(self:parameters(), { lr = 0.01 }) end

local function loader()
  lt.seed(1)
  local x <const> = lt.randn(128, 16)
  local y <const> = x:narrow(2, 1, 2):sum(2, { keepdim = true }):sin()
  return lt.data.DataLoader(lt.data.TensorDataset(x, y), { batch_size = 32 })
end

-- The net after a fit, its trainer, and its loss over all data in f32.
local function fit(precision, options, fit_options, net)
  net = net or Net()
  local o = { precision = precision, max_epochs = 15 }
  for name, value in pairs(options or {}) do o[name] = value end
  local trainer, data = tiny.trainer(o), loader()
  trainer:fit(net, data, nil, fit_options)
  net:float():to(lt.zeros(1).device)
  local loss = 0.0
  for batch in data:batches() do loss = loss + net:training_step(batch):item() end
  return net, trainer, loss / 4
end

local function weights_of(net)
  local list = {}
  for i, parameter in ipairs(net:parameters()) do list[i] = parameter:to("f64"):tolist() end
  return list
end

describe("precision", function()
  it("fp8-mixed trains about as bf16-mixed does", function()
    local _, _, before = fit("32", { max_epochs = 0 })
    local _, _, half = fit "bf16-mixed"
    local net, trainer, loss = fit "fp8-mixed"
    assert.equal("fp8-mixed", trainer.precision)
    assert.equal("f32", net.layers[1].weight.dtype)
    assert.is_true(half < before / 10 and loss < before / 10,
      ("%g before, %g in bf16, %g in float8"):format(before, half, loss))
  end)

  for name, dtype in pairs { ["transformer-engine"] = "bf16",
    ["transformer-engine-float16"] = "f16" } do
    it(name .. " has weights in " .. dtype, function()
      local net, seen = Net(), {}
      function net:training_step(batch)
        seen.weight, seen.x = self.layers[1].weight.dtype, batch[1].dtype
        seen.product = self.layers[1](batch[1]).dtype
        return Net.training_step(self, batch)
      end
      tiny.trainer({ precision = name, limit_train_batches = 2 }):fit(net, loader())
      assert.same({ weight = dtype, x = dtype, product = dtype }, seen)
    end)
  end

  it("in float8 computes what quantized factors give, forward and backward", function()
    local net, got = Net(), {}
    local layer <const> = net.layers[1]
    function net:training_step(batch)
      local x = batch[1]:narrow(1, 1, 7):clone():requires_grad_() -- not 16
      local y = layer(x)
      y:backward(lt.full_like(y, 0.3))
      got.x, got.y, got.dx, got.dw, got.db = x:detach(), y:detach(), x.grad,
        layer.weight.grad:clone(), layer.bias.grad:clone()
      layer.weight.grad, layer.bias.grad = nil, nil
      got.weight, got.bias = layer.weight:detach():clone(), layer.bias:detach():clone()
      return Net.training_step(self, batch)
    end
    tiny.trainer({ precision = "fp8-mixed", limit_train_batches = 1 }):fit(net, loader())
    for name, t in pairs(got) do got[name] = t:to(lt.zeros(1).device) end
    local function rounded(t, format) -- scales of the first step are 1
      return lt.dequantize_float8(lt.quantize_float8(t, lt.tensor(1.0), { format = format }),
        { format = format })
    end
    local x, w = rounded(got.x, "e4m3"), rounded(got.weight, "e4m3")
    local g = rounded(lt.full({ 7, 32 }, 0.3):to("bf16"):float(), "e5m2")
    local y = x:matmul(w:t()):to "bf16" + got.bias:to "bf16"
    assert.is_true(y:eq(got.y):all():item())
    assert.is_true(lt.allclose(g:matmul(w), got.dx, { rtol = 1e-5, atol = 1e-5 }))
    assert.is_true(lt.allclose(g:t():matmul(x), got.dw, { rtol = 1e-5, atol = 1e-5 }))
    assert.near(7 * 0.3, got.db[1]:item(), 0.02)
  end)

  it("in float8 uses layers whose dims 16 divides, while a Trainer runs", function()
    local net, seen = Net(), {}
    function net:training_step(batch)
      for i = 1, 5, 2 do seen[i] = tostring(self.layers[i]):match "%w+" end
      return Net.training_step(self, batch)
    end
    local trainer = tiny.trainer { precision = "fp8-mixed", limit_train_batches = 1 }
    trainer:fit(net, loader())
    assert.equal("Float8Linear Float8Linear Linear",
      table.concat({ seen[1], seen[3], seen[5] }, " "))
    assert.equal(nn.Linear, getmetatable(net.layers[1]))
    assert.matches("precision = 'fp8%-mixed': the module has no nn.Linear whose in_features and "
      .. "out_features are multiples of 16: write 'bf16%-mixed'",
      error_of(function() trainer:fit(tiny.Line(), tiny.same(1)) end))
  end)

  it("in float8 takes no scale from validation", function()
    local plain = fit("fp8-mixed", { max_epochs = 3 })
    local net = Net()
    local trainer = tiny.trainer { precision = "fp8-mixed", max_epochs = 3,
      num_sanity_val_steps = 1, val_check_interval = 1 }
    local bright = lt.data.DataLoader(lt.data.TensorDataset(lt.full({ 32, 16 }, 1e4),
      lt.zeros(32, 1)), { batch_size = 32 })
    trainer:fit(net, loader(), bright)
    assert.same(weights_of(plain), weights_of(net))
  end)

  it("in float8 resumes with the bits of a fit that was not interrupted", function()
    local path <const> = tiny.folder() .. ".ckpt"
    local straight = fit("fp8-mixed", { max_epochs = 4 })
    local _, trainer = fit("fp8-mixed", { max_epochs = 2 })
    trainer:save_checkpoint(path)
    local saved = lt.CheckpointIO():load(path)
    assert.same({ "layers.0", "layers.2" }, saved.precision.names)
    assert.same({ 6 }, saved.precision.scale.shape)
    local resumed = fit("fp8-mixed", { max_epochs = 4 }, { ckpt_path = path })
    assert.same(weights_of(straight), weights_of(resumed))
    os.remove(path)
  end)

  it("in float8 computes again what is recomputed in backward", function()
    local plain = fit("fp8-mixed", { max_epochs = 2 })
    local net = Net()
    function net:training_step(batch)
      local y = nn.utils.checkpoint(function(x) return self.layers(x) end, batch[1])
      return lt.mse_loss(y:float(), batch[2])
    end
    fit("fp8-mixed", { max_epochs = 2 }, nil, net)
    assert.same(weights_of(plain), weights_of(net))
  end)
end)

describe("delayed scaling", function()
  it("makes the largest of the history the largest number of the format", function()
    local scaling <const> = DelayedScaling { "a", "b" }
    scaling:quantize(1, 1, lt.tensor { 0.5, -7.0 }, true)
    scaling:quantize(1, 1, lt.tensor { 3.5 }, true) -- a second microbatch
    scaling:quantize(1, 2, lt.tensor { 1e9 }, false)
    scaling:quantize(2, 3, lt.tensor { 2.0 }, true)
    scaling:update()
    assert.same({ 448 / 7, 1, 1, 1, 1, 57344 / 2 }, scaling.scale:tolist())
    scaling:quantize(1, 1, lt.tensor { 0.5 }, true)
    scaling:quantize(2, 3, lt.tensor { 4.0 }, true)
    scaling:update()
    assert.same({ 448 / 7, 1, 1, 1, 1, 57344 / 4 }, scaling.scale:tolist())
  end)

  it("forgets after 1024 steps, and stays where nothing is finite", function()
    local scaling <const> = DelayedScaling { "a" }
    scaling:quantize(1, 1, lt.tensor { 7.0 }, true)
    scaling:update()
    for _ = 1, 1023 do
      scaling:quantize(1, 1, lt.tensor { 0.5 }, true)
      scaling:update()
    end
    assert.equal(64, scaling.scale[1]:item())
    scaling:update()
    assert.equal(896, scaling.scale[1]:item())
    scaling:quantize(1, 1, lt.tensor { math.huge }, true)
    scaling:update()
    assert.equal(896, scaling.scale[1]:item())
  end)

  it("refuses the state of other layers", function()
    local state = DelayedScaling({ "a" }):state_dict()
    assert.matches("the layers in float8 are others: saved a; here b",
      error_of(function() DelayedScaling({ "b" }):load_state_dict(state) end))
  end)
end)
