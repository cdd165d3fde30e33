-- spec/bench/elastic_soak_fit.lua: the fit of ./dev bench elastic_soak, which writes down what it
-- does in its working folder.
--
--   steps.K           "TIME STEP ROUND RANKS" at the end of each step, by rank 0; K = STEP // 50
--   rounds            "ROUND STEP PARENT": the step that a round began with, and the round that
--                     wrote what it resumed from (-1: nothing)
--   samples.RANK.K    "ROUND STEP ID ID ...": the samples of a step, before its gradients are added
--   last              made by the bench: the step to end at, or one later
--   weights           of the end
--
-- These are small, so that they grow also while the bench limits the size of files, which keeps
-- snapshots from being made. SLEEP: seconds that a step takes besides.
local c = require "ltrain.c"
local lt = require "ltrain"

local SAMPLES <const>, BATCH <const>, WIDTH <const> = 1000, 16, 8
local sleep <const> = tonumber(os.getenv "SLEEP" or "0")
local world <const> = lt.dist.world()

local function append(name, text)
  local file <close> = assert(io.open(name, "a"))
  assert(file:write(text, "\n"))
  assert(file:flush())
end

local function last_step()
  local file <close> = io.open "last"
  return file and file:read "n" or math.huge
end

lt.seed(1)
local Net = lt.Module:extend "Net"

function Net:init()
  self.body = lt.nn.Sequential(lt.nn.Linear(WIDTH, 32), lt.nn.ReLU(), lt.nn.Dropout(0.1),
    lt.nn.Linear(32, WIDTH))
  self.parent = -1
end

function Net:on_save_checkpoint(saved) saved.round = world.incarnation end

function Net:on_load_checkpoint(saved) self.parent = saved.round end

function Net:on_train_start()
  if self.trainer.is_global_zero then
    append("rounds", ("%d %d %d"):format(world.incarnation, self.trainer.global_step, self.parent))
  end
end

function Net:training_step(batch)
  local step <const> = self.trainer.global_step
  append(("samples.%d.%d"):format(self.trainer.global_rank, step // 20), ("%d %d %s"):format(
    world.incarnation, step, table.concat(batch[2]:tolist(), " ")))
  return lt.mse_loss(self.body(batch[1]), batch[1])
end

function Net:on_train_batch_end()
  local trainer <const> = self.trainer
  if trainer.is_global_zero then
    append("steps." .. trainer.global_step // 50, ("%.6f %d %d %d"):format(c.runtime.time(),
      trainer.global_step, world.incarnation, trainer.world_size))
  end
  trainer.should_stop = trainer.global_step >= last_step()
  if sleep > 0 then c.runtime.sleep(sleep) end
end

function Net:configure_optimizers()
  local optimizer <const> = lt.optim.Adam(self:parameters(), { lr = 1e-3 })
  return { optimizer = optimizer, lr_scheduler = { interval = "step",
    scheduler = lt.optim.CosineAnnealingLR(optimizer, { T_max = 500 }) } }
end

local data <const> = lt.data.TensorDataset(lt.randn(SAMPLES, WIDTH), lt.arange(SAMPLES))
local net <const> = Net()
local trainer <const> = lt.Trainer { max_epochs = -1, deterministic = "world", world_slices = 8,
  snapshot_every = 0.3, logger = false, enable_progress_bar = false, enable_model_summary = false,
  callbacks = { lt.callbacks.ModelCheckpoint { every_n_train_steps = 100 } } }
trainer:fit(net, lt.data.DataLoader(data, { global_batch_size = BATCH, shuffle = true }))
if trainer.is_global_zero then
  for name, weight in net:named_parameters() do
    local digits <const> = {}
    for i, value in ipairs(weight:detach():flatten():tolist()) do
      digits[i] = ("%a"):format(value)
    end
    append("weights", name .. " " .. table.concat(digits, " "))
  end
end
