-- spec/callbacks/spike_monitor_spec.lua: samples of a batch whose loss jumped.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local WRONG <const> = 37 -- the batch with a sample that is far off, its third

-- Trains a net with dropout, batch norm and random numbers in its step; returns the hash of its
-- weights and the folder.
local function train(callbacks, shape, wrong)
  lt.seed(3)
  local nn = lt.nn
  local size = shape[1] * shape[2] * shape[3]
  local net = nn.Sequential(nn.Flatten(), nn.Linear(size, 4), nn.BatchNorm1d(4), nn.Dropout(0.3),
    nn.Linear(4, 1))
  function net:training_step(batch)
    self.last_noise = lt.rand(1):item()
    local loss = lt.mse_loss(self(batch.image), batch.target) + 0.01 * self.last_noise
    self:log("train_loss", loss)
    return loss
  end
  function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.001 }) end
  local loader = {}
  for i = 1, 60 do
    local target = lt.zeros(4, 1)
    if i == WRONG then target[{ 3, 1 }] = wrong or 30 end
    loader[i] = { image = lt.rand(4, shape[1], shape[2], shape[3]), target = target }
  end
  local folder = tiny.folder()
  local trainer = lt.Trainer { max_epochs = 1, log_every_n_steps = 1, default_root_dir = folder,
    callbacks = callbacks, enable_progress_bar = false, enable_model_summary = false }
  local ok, message = pcall(trainer.fit, trainer, net, loader)
  assert(ok or wrong ~= wrong and message:find "the loss is nan", message)
  local run = lt.runs.read(trainer.log_dir)
  local samples = {}
  for _, entry in ipairs(lt.runs.media(run)) do
    if entry.kind == "sample" then samples[#samples + 1] = entry end
  end
  local hash = lt.hash(net:state_dict())
  local function exists(path)
    local file = io.open(trainer.log_dir .. "/media/" .. path)
    if file then file:close() end
    return file ~= nil
  end
  return hash, samples, exists, function() os.execute("rm -r " .. folder) end
end

describe("SpikeMonitor", function()
  it("keeps the sample that made the loss jump, and leaves the training as it is", function()
    local plain, _, _, remove = train({}, { 1, 4, 4 })
    remove()
    local hash, samples, exists, remove_too = train({ lt.callbacks.SpikeMonitor() }, { 1, 4, 4 })
    assert.equal(plain, hash)
    local entry = samples[1]
    assert.equal("train_loss", entry.name)
    assert.equal(WRONG - 1, entry.step)
    assert.is_true(entry.value > 100 and entry.usual < 10)
    assert.equal(4, #entry.samples)
    assert.equal(3, entry.samples[1].index)
    assert.is_true(entry.samples[1].loss > 500)
    assert.matches("tensor", entry.samples[1].text)
    assert.equal(4, #entry.files)
    for _, file in ipairs(entry.files) do assert.is_true(exists(file)) end
    remove_too()
  end)

  it("keeps those that are not finite, and texts where there is no picture", function()
    local _, samples, _, remove = train({ lt.callbacks.SpikeMonitor { samples = 2, most = 1 } },
      { 5, 1, 1 }, 0 / 0)
    assert.equal(1, #samples)
    assert.equal("nan", samples[1].value)
    assert.equal(2, #samples[1].samples)
    assert.equal(3, samples[1].samples[1].index)
    assert.equal("nan", samples[1].samples[1].loss)
    assert.is_nil(samples[1].files)
    remove()
  end)

  it("keeps nothing of a loss that falls", function()
    local _, samples, _, remove = train({ lt.callbacks.SpikeMonitor() }, { 1, 2, 2 }, 0)
    assert.equal(0, #samples)
    remove()
  end)
end)
