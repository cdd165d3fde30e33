-- spec/metrics/logging_spec.lua: collections in log_dict, in checkpoints, and where a run resumes.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local m <const> = lt.metrics

local function new_net()
  local net = tiny.Line()
  local o = { num_classes = 3, average = "macro" }
  net.metrics = m.MetricCollection({ recall = m.Recall(o), precision = m.Precision(o),
    each = m.ClasswiseWrapper(m.Recall { num_classes = 3, average = "none" }) },
    { prefix = "train_" })
  function net:training_step(x, i)
    self.metrics(lt.tensor { i % 3, 1 }, lt.tensor { 0, 1 })
    self:log_dict(self.metrics, { on_step = false, on_epoch = true })
    return self:loss(x)
  end
  return net
end

local function trainer(folder, options)
  options.logger, options.enable_progress_bar = false, false
  options.enable_model_summary, options.default_root_dir = false, folder
  options.enable_checkpointing = false
  return lt.Trainer(options)
end

local batches <const> = tiny.batches({ 1 }, { 2 }, { 3 }, { 4 })

describe("log_dict", function()
  it("logs the metrics of a collection, and those of classes by their names", function()
    local t = trainer(tiny.folder(), { max_epochs = 2 })
    t:fit(new_net(), batches)
    -- Of 8: class 0 is said to be 0, 1, 2, 0; class 1 is always right.
    assert.near(0.5, t.callback_metrics.train_recall_0, 1e-12)
    assert.equal(1, t.callback_metrics.train_recall_1)
    assert.near(0.5, t.callback_metrics.train_recall, 1e-12)
    assert.near((1 + 4 / 5 + 0) / 3, t.callback_metrics.train_precision, 1e-12)
  end)

  it("continues with them where a run is resumed in mid-epoch", function()
    local folder = tiny.folder()
    local whole = trainer(folder, { max_epochs = 1 })
    whole:fit(new_net(), batches)
    local cut = trainer(folder, { max_steps = 3 })
    cut:fit(new_net(), batches)
    cut:save_checkpoint(folder .. "/cut.ckpt")
    local rest = trainer(folder, { max_epochs = 1 })
    rest:fit(new_net(), batches, { ckpt_path = folder .. "/cut.ckpt" })
    for name, value in pairs(whole.callback_metrics) do
      assert.equal(value, rest.callback_metrics[name], name)
    end
  end)
end)
