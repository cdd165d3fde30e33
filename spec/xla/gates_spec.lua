-- spec/xla/gates_spec.lua: what a fit on an XLA device must not do: compile again, end its programs
-- within steps, or keep memory.
-- tags: slow, sampled, unsanitized
local lt = require "ltrain"
local plugin = require "spec.xla.plugin"
local sample = require "spec.sample"
local ten = require "spec.xla.ten_models"

local nn <const> = lt.nn
local EPOCHS <const>, BATCHES <const>, SIZE <const> = 3, 4, 8

-- A module that classifies what `net` gives, with what users log.
local Net = lt.Module:extend("Net")

function Net:init(net, optimizer)
  self.net, self.optimizer_of, self.accuracy = net, optimizer, lt.metrics.Accuracy()
end

function Net:training_step(batch)
  local logits = self.net(batch[1])
  local loss = lt.cross_entropy(logits, batch[2])
  self:log("loss", loss, { on_step = true, on_epoch = true })
  self.accuracy:update(logits, batch[2])
  self:log("accuracy", self.accuracy, { on_step = false, on_epoch = true })
  return loss
end

function Net:validation_step(batch)
  self:log("val_loss", lt.cross_entropy(self.net(batch[1]), batch[2]))
end

function Net:configure_optimizers()
  local optimizer, scheduler = self.optimizer_of(self.net:parameters())
  return { optimizer = optimizer, lr_scheduler = scheduler and { scheduler = scheduler,
    interval = "step" } }
end

-- How many programs there are, and how many graphs have ended.
local function counted()
  local report, cuts = lt.xla.report(), 0
  for _, cut in ipairs(report.cuts) do cuts = cuts + cut.count end
  return { programs = #report.programs, cuts = cuts }
end

local function loader(samples, shape)
  local x, y = lt.randn(samples, table.unpack(shape)), lt.randint(0, 3, { samples })
  return lt.data.DataLoader(lt.data.TensorDataset(x, y), { batch_size = SIZE })
end

-- Fits with last batches that are smaller; what was counted when an epoch began, and at the end.
local function fit(make, shape, optimizer, options)
  lt.seed(1)
  local counts, Probe = {}, lt.Callback:extend("Probe")
  function Probe.on_train_epoch_start() counts[#counts + 1] = counted() end
  local all = { accelerator = "xla", max_epochs = EPOCHS, logger = false, callbacks = { Probe() },
                enable_checkpointing = false, enable_progress_bar = false,
                enable_model_summary = false, num_sanity_val_steps = 0 }
  for name, value in pairs(options or {}) do all[name] = value end
  lt.Trainer(all):fit(Net(make(), optimizer),
    { train = loader(SIZE * BATCHES - 3, shape), val = loader(SIZE + 2, shape) })
  counts[#counts + 1] = counted()
  return counts
end

local function adam(parameters) return lt.optim.AdamW(parameters, { lr = 1e-3 }) end
local function sgd(parameters)
  local optimizer = lt.optim.SGD(parameters, { lr = 1e-2, momentum = 0.9 })
  return optimizer, lt.optim.CosineAnnealingLR(optimizer, 30)
end
local function rmsprop(parameters) return lt.optim.RMSprop(parameters, { lr = 1e-3 }) end

local Last = lt.Module:extend("Last") -- the last step of a recurrent layer

function Last:init() self.lstm, self.head = nn.LSTM(5, 6), nn.Linear(6, 3) end
function Last:forward(x)
  local y = self.lstm(x)
  return (self.head(y:select(2, -1)))
end

local function mlp() return nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 3)) end
local function cnn()
  return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.2), nn.Linear(36, 3))
end
local function vit()
  return lt.models.vit { image_size = 8, patch_size = 4, in_channels = 1, num_layers = 1,
    num_heads = 2, hidden_dim = 8, mlp_dim = 16, num_classes = 3 }
end

-- name, the net, the shape of a sample, the optimizer, options; programs, if not four: of full and
-- last batches, in training and validation
local FITS <const> = {
  { "an MLP", mlp, { 20 }, adam },
  { "clipped gradients", mlp, { 20 }, adam, { gradient_clip_val = 0.5 } },
  { "clipped values", mlp, { 20 }, adam, { gradient_clip_val = 0.5,
    gradient_clip_algorithm = "value" } },
  { "windows of two batches", mlp, { 20 }, adam, { accumulate_grad_batches = 2 }, programs = 5 },
  { "bf16", mlp, { 20 }, adam, { precision = "bf16-mixed" } },
  { "convolutions, dropout and a schedule", cnn, { 1, 8, 8 }, sgd },
  { "a row of updates.def", mlp, { 20 }, rmsprop },
  { "a recurrent layer", Last, { 7, 5 }, adam },
  { "a ViT", vit, { 1, 8, 8 }, adam },
}

-- One of ten_models.lua, with what users log.
local Model = lt.Module:extend("Model")

function Model:init(row)
  self.net, self.loss_of, self.optimizer_of = row[3](), row[5], row[6]
end

function Model:training_step(batch)
  local loss = self.loss_of(self.net, batch[1], batch[2])
  self:log("loss", loss, { on_step = true, on_epoch = true })
  return loss
end

function Model:configure_optimizers() return self.optimizer_of(self.net) end

-- Fits on equal batches, with loggers at each step; how many programs and cuts there were by the
-- end of each epoch.
local function epochs_of(module, batches, options)
  local counts, Probe = {}, lt.Callback:extend("Probe")
  function Probe.on_train_epoch_end() counts[#counts + 1] = counted() end
  local all = { accelerator = "xla", max_epochs = 4, logger = lt.Logger(), log_every_n_steps = 1,
                callbacks = { Probe() }, enable_checkpointing = false,
                enable_progress_bar = false, enable_model_summary = false }
  for name, value in pairs(options) do all[name] = value end
  lt.Trainer(all):fit(module, batches)
  return counts
end

local function one_cut_a_batch(counts, batches)
  for epoch = 2, #counts - 1 do
    local before, after = counts[epoch], counts[epoch + 1]
    assert.equal(before.programs, after.programs, "programs of epoch " .. epoch)
    assert.equal(batches, after.cuts - before.cuts)
  end
end

describe("a model on xla is logged and clipped with one cut a batch, and compiles no more:",
  function()
    for _, row in ipairs(sample(ten, 10)) do
      it(row[1], function()
        if plugin.missing then return pending(plugin.missing) end
        lt.seed(1)
        local module, batches = row[5] and Model(row) or row[3](), {}
        for k = 1, BATCHES do
          local x, y = row[4]()
          if tostring(x.dtype) ~= "i64" then x = x:to(row[2]) end
          batches[k] = y and { x, y } or x
        end
        local clips = row[5] and { gradient_clip_val = 1 } or {} -- not in manual optimization
        one_cut_a_batch(epochs_of(module:to(row[2]), batches, clips), BATCHES)
      end)
    end
  end)

describe("a fit on xla", function()
  it("with a GradScaler compiles two programs, and cuts once a batch", function()
    if plugin.missing then return pending(plugin.missing) end
    lt.seed(1)
    local before, batches = counted(), {}
    for k = 1, BATCHES do batches[k] = { lt.randn(SIZE, 20), lt.randint(0, 3, { SIZE }) } end
    local counts = epochs_of(Net(mlp(), adam), batches,
      { precision = "16-mixed", gradient_clip_val = 0.5, log_every_n_steps = 1000 })
    one_cut_a_batch(counts, BATCHES)
    assert.equal(2, counts[#counts].programs - before.programs)
  end)

  for _, f in ipairs(sample(FITS, 6)) do
    local programs <const> = f.programs or 4
    it(("compiles %d programs, and cuts once a batch: %s"):format(programs, f[1]), function()
      if plugin.missing then return pending(plugin.missing) end
      local counts = fit(table.unpack(f, 2))
      assert.is_true(counts[2].programs - counts[1].programs <= programs)
      for epoch = 2, EPOCHS do
        local before, after = counts[epoch], counts[epoch + 1]
        assert.equal(before.programs, after.programs, "programs of epoch " .. epoch)
        assert.equal(BATCHES + 2, after.cuts - before.cuts)
      end
    end)
  end

  it("has the same tensors in 1,000 steps", function()
    if plugin.missing then return pending(plugin.missing) end
    local bytes, Probe = {}, lt.Callback:extend("Probe")
    function Probe.on_train_epoch_end() -- no step is on its way
      collectgarbage()
      bytes[#bytes + 1] = lt.xla.memory_allocated()
    end
    lt.Trainer { accelerator = "xla", max_epochs = 10, logger = false, callbacks = { Probe() },
      enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
      gradient_clip_val = 1, log_every_n_steps = 1, limit_val_batches = 0 }
      :fit(Net(mlp(), adam), { train = loader(SIZE * 100, { 20 }) })
    assert.equal(10, #bytes)
    for k = 3, 10 do assert.equal(bytes[2], bytes[k], table.concat(bytes, " ")) end
  end)
end)
