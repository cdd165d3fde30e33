-- spec/cuda/contexts_work.lua: what spec/cuda/contexts_spec.lua runs: a fit on the second GPU with
-- files, pinned batches and helper threads. Prints which GPUs have a context then, as bits.
--
--   ltrain contexts_work.lua FOLDER
local counts = require "spec.cuda.counts"
local lt = require "ltrain"
local nn = lt.nn

local Net <const> = lt.Module:extend "Net"

function Net:init() self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)) end

function Net:training_step(batch)
  local loss = nn.functional.cross_entropy(self.layers(batch[1]), batch[2])
  self:log("loss", loss, { on_epoch = true })
  return loss
end

function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 0.01 }) end

local data = lt.data.TensorDataset(lt.randn(40, 6), lt.randint(0, 3, { 40 }))
lt.Trainer {
  accelerator = "gpu", devices = "1,", max_epochs = 2, logger = false, precision = "16-mixed",
  default_root_dir = arg[1], enable_progress_bar = false, enable_model_summary = false,
  callbacks = { lt.callbacks.ModelCheckpoint { every_n_train_steps = 2, save_top_k = -1,
    save_last = true } },
}:fit(Net(), lt.data.DataLoader(data, { batch_size = 8, shuffle = true, pin_memory = true,
  num_workers = 1 }))
lt.cuda.empty_cache()
print("contexts: " .. counts().contexts)
