-- spec/trainer/precision_spec.lua: the Trainer's `precision`: names, dtypes, files.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

-- What a step of a linear layer sees, the layer and the trainer; `from`: the file to resume from.
local function fit(precision, from)
  local net, seen = lt.nn.Linear(2, 1), {}
  function net:training_step(batch)
    local y = self(batch[1])
    seen.x, seen.ids, seen.y = batch[1].dtype, batch[2].dtype, y.dtype
    return y:square():mean()
  end
  function net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 0.01 }) end
  local trainer = tiny.trainer { precision = precision, max_epochs = from and 2 or 1 }
  local batch = { lt.ones(4, 2), lt.zeros({ 4 }, { dtype = "i64" }) }
  trainer:fit(net, { batch, batch }, nil, { ckpt_path = from })
  return seen, net, trainer
end

-- The name of a precision, of weights, batches and products.
local PRECISIONS <const> = {
  { "32-true", "f32", "f32", "f32", 32, "32" }, { "64-true", "f64", "f64", "f64", 64, "64" },
  { "16-true", "f16", "f16", "f16" }, { "bf16-true", "bf16", "bf16", "bf16" },
  { "bf16-mixed", "f32", "f32", "bf16", "bf16" },
}

describe("precision", function()
  for _, row in ipairs(PRECISIONS) do
    local name, weights, batch, product = table.unpack(row, 1, 4)
    it(name .. " says the dtypes of weights, batches and products", function()
      local seen, net, trainer = fit(name)
      assert.equal(name, trainer.precision)
      assert.same({ weights, weights }, { net.weight.dtype, net.bias.dtype })
      assert.same({ x = batch, ids = "i64", y = product }, seen)
    end)
  end

  it("has Lightning's short names", function()
    for _, row in ipairs(PRECISIONS) do
      for i = 5, #row do assert.equal(row[1], lt.Trainer({ precision = row[i] }).precision) end
    end
  end)

  it("16-mixed is bf16-mixed on the CPU", function()
    for _, name in ipairs { "16-mixed", 16, "16" } do
      local trainer = lt.Trainer { precision = name,
        strategy = lt.strategies.SingleDevice { device = "cpu" } }
      assert.equal("bf16-mixed", trainer.precision)
      assert.equal("bf16", trainer.precision_plugin.autocast)
    end
  end)

  it("bf16-mixed leaves nothing of a fit behind but the module", function()
    local runtime = require "ltrain.c".runtime
    local live = {}
    for i = 1, 3 do
      fit "bf16-mixed"
      collectgarbage()
      collectgarbage()
      live[i] = runtime.memory().live_bytes
    end
    assert.equal(live[2], live[3])
  end)

  it("that is unknown is an error with the nearest name", function()
    local message = tiny.error_of(lt.Trainer, { precision = "bf16-mixd" })
    assert.matches("Trainer: precision = 'bf16%-mixd': must be one of 16%-mixed, 16%-true, "
      .. "32%-true, 64%-true, bf16%-mixed, bf16%-true, fp8%-mixed, transformer%-engine, "
      .. "transformer%-engine%-float16; did you mean 'bf16%-mixed'?", message)
  end)
end)

describe("a checkpoint", function()
  it("keeps the dtypes of a precision", function()
    local path = tiny.folder() .. ".ckpt"
    for _, row in ipairs(PRECISIONS) do
      local _, net, trainer = fit(row[1])
      trainer:save_checkpoint(path)
      local saved = lt.CheckpointIO():load(path)
      assert.equal(row[2], saved.state_dict.weight.dtype)
      assert.same(net.weight:tolist(), saved.state_dict.weight:tolist())
      os.remove(path)
    end
  end)

  it("resumes in another precision, with the moments in its dtype", function()
    local path = tiny.folder() .. ".ckpt"
    for _, pair in ipairs { { "64-true", "bf16-true" }, { "bf16-true", "64-true" },
      { "32-true", "16-true" }, { "16-true", "32-true" } } do
      local _, _, first = fit(pair[1])
      first:save_checkpoint(path)
      local _, net, trainer = fit(pair[2], path)
      assert.equal(4, trainer.global_step)
      local state = trainer.optimizers[1].state[net.weight]
      assert.equal(pair[2] == "64-true" and "f64" or "f32", state.exp_avg.dtype)
      assert.equal(4, state.step)
      os.remove(path)
    end
  end)
end)
