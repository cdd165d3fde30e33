-- spec/bench/slow_links/fit.lua: ltrain's side of ./dev bench slow_links.
--
--   ltrain fit.lua FOLDER SECONDS NAME       on each of two ranks
--
-- Trains for so many seconds with the data and first weights in FOLDER. Rank 0 prints `result
-- SAMPLES_A_SECOND LOSS STEPS`: of both ranks, and the loss on samples that were not trained on.
local c = require "ltrain.c"
local lt = require "ltrain"

local folder, seconds, name = arg[1], tonumber(arg[2]), arg[3]
local BATCH <const>, HELD_OUT <const>, WARM_UP <const> = 64, 2000, 3
local hooks, strategies = lt.dist.hooks, lt.strategies

local STRATEGIES <const> = {
  ddp = "ddp",
  bf16 = strategies.DDP { ddp_comm_hook = "bf16" },
  powerSGD = strategies.DDP { ddp_comm_hook = hooks.powerSGD { rank = 4, start = 10 } },
  topk = strategies.DDP { ddp_comm_hook = hooks.topk { ratio = 0.01 } },
  random_k = strategies.DDP { ddp_comm_hook = hooks.random_k { ratio = 0.05 } },
  int8 = strategies.DDP { ddp_comm_hook = "int8" },
  sign = strategies.DDP { ddp_comm_hook = "sign" },
  local_sgd = { "local_sgd", period = 16 },
  diloco = { "diloco", every = 50 },
  ["diloco, overlap"] = { "diloco", every = 50, fragments = 2, overlap = 10 },
}

c.runtime.set_threads(1)
local function load(file) return assert(lt.numpy.load(folder .. "/" .. file .. ".npy")):clone() end

local net = lt.nn.Sequential(lt.nn.Linear(256, 1024), lt.nn.ReLU(), lt.nn.Linear(1024, 1024),
  lt.nn.ReLU(), lt.nn.Linear(1024, 10))
local _ <const> = lt.no_grad(function()
  for i, parameter in ipairs(net:parameters()) do parameter:copy_(load("w" .. i)) end
end)

local x, y = load "x", load "y"
local count = x.shape[1] - HELD_OUT
local began, first

function net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function net:configure_optimizers()
  return lt.optim.SGD(self:parameters(), { lr = 0.05, momentum = 0.9 })
end
function net:on_train_batch_end(_, _, i)
  local step = self.trainer.global_step
  if step == WARM_UP then began, first = c.runtime.clock(), step end
  if began and i >= 0 and c.runtime.clock() - began > seconds then
    self.trainer.should_stop = true
  end
end
function net:on_train_end()
  local took, steps = c.runtime.clock() - began, self.trainer.global_step - first
  if not self.trainer.is_global_zero then return end
  local held = x:narrow(1, count + 1, HELD_OUT)
  local _ <close> = lt.no_grad()
  local loss = lt.cross_entropy(self(held), y:narrow(1, count + 1, HELD_OUT)):item()
  print(("result %.6g %.6g %d"):format(2 * BATCH * steps / took, loss, steps))
end

lt.Trainer { max_epochs = 1000, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false, nonfinite = "allow",
  strategy = STRATEGIES[name] }
  :fit(net, lt.data.DataLoader(lt.data.TensorDataset(x:narrow(1, 1, count),
    y:narrow(1, 1, count)), { batch_size = BATCH, shuffle = true }))
