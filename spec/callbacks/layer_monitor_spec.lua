-- spec/callbacks/layer_monitor_spec.lua: statistics of parameters and gradients in layers.jsonl.
local c = require "ltrain.c"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local function lines_of(path)
  local list = {}
  for line in io.lines(path) do list[#list + 1] = c.io.json_decode(line, { plain = true }) end
  return list
end

describe("LayerMonitor", function()
  it("writes mean, std, min, max and norm of weights and gradients", function()
    local folder = tiny.folder()
    local net = lt.nn.Linear(3, 1, { bias = false })
    local weights = { 1.5, -2, 0.25 }
    lt.no_grad(function() net.weight:copy_(lt.tensor { weights }) end)
    function net:training_step(x) return self(x):sum() end -- gradient: the column sums of x
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.5 }) end
    local trainer = lt.Trainer { max_epochs = 4, default_root_dir = folder,
      enable_progress_bar = false, enable_model_summary = false,
      callbacks = { lt.callbacks.LayerMonitor { every_n_steps = 2, histograms_every = 2 } } }
    trainer:fit(net, { lt.tensor { { 1.0, 2, 3 } } })
    local path = trainer.log_dir .. "/layers.jsonl"
    local lines = lines_of(path)
    assert.equal(2, #lines) -- before steps 0 and 2 of 4
    assert.equal(0, lines[1].step)
    assert.equal(2, lines[2].step)
    local layer = lines[1].layers[1]
    assert.equal("weight", layer.name)
    assert.same({ 1, 3 }, layer.shape)
    local mean = (1.5 - 2 + 0.25) / 3
    local square = (1.5 ^ 2 + 2 ^ 2 + 0.25 ^ 2) / 3
    assert.near(mean, layer.weight.mean, 1e-6)
    assert.near(math.sqrt(square - mean ^ 2), layer.weight.std, 1e-6)
    assert.near(math.sqrt(3 * square), layer.weight.norm, 1e-6)
    assert.equal(-2, layer.weight.min)
    assert.equal(1.5, layer.weight.max)
    assert.near(2, layer.grad.mean, 1e-6)
    assert.near(math.sqrt(14), layer.grad.norm, 1e-6)
    assert.equal(30, #layer.grad.counts)
    assert.is_nil(lines[2].layers[1].weight.counts)
    assert.equal(0, layer.weight.nonfinite)
    -- Resumed: lines of the steps that are made again go.
    local last = trainer.checkpoint_callback.last_model_path
    assert.truthy(last)
    os.execute("rm -r " .. folder)
  end)

  it("counts what is not finite", function()
    local folder = tiny.folder()
    local net = tiny.Line()
    net.some = lt.parameter(lt.tensor { 1.0, 3.0, 0 / 0, 1 / 0 })
    net.all = lt.parameter(lt.tensor { 0 / 0 })
    local trainer = tiny.trainer { logger = true, default_root_dir = folder,
      callbacks = { lt.callbacks.LayerMonitor() } }
    trainer:fit(net, tiny.same(1))
    local of = {}
    for _, layer in ipairs(lines_of(trainer.log_dir .. "/layers.jsonl")[1].layers) do
      of[layer.name] = layer.weight
    end
    assert.same({ 2, 2, 3 }, { of.some.nonfinite, of.some.mean, of.some.max })
    assert.same({ nonfinite = 1 }, of.all)
    os.execute("rm -r " .. folder)
  end)

  it("warns and records nothing more where a resumed run cannot cut its file", function()
    local folder, warned <const> = tiny.folder(), {}
    local monitor <const> = lt.callbacks.LayerMonitor { every_n_steps = 1 }
    local trainer = tiny.trainer { logger = true, default_root_dir = folder,
      callbacks = { monitor } }
    function trainer.warn(_, text) warned[#warned + 1] = text end
    trainer:fit(tiny.Line(), tiny.same(1))
    local path <const> = trainer.log_dir .. "/layers.jsonl"
    for name, expected in pairs { write_file = "no space left", read_file = "no such device" } do
      local kept <const>, before = lines_of(path), c.io[name]
      c.io[name] = function() return nil, expected end
      local ok, wrong = pcall(monitor.on_train_start, monitor, trainer)
      c.io[name] = before
      assert(ok, wrong)
      monitor.seen = nil
      monitor:on_before_optimizer_step(trainer, trainer.module)
      assert.equal("LayerMonitor: " .. expected, table.remove(warned))
      assert.same(kept, lines_of(path))
    end
    os.execute("rm -r " .. folder)
  end)
end)
