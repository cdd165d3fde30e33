-- spec/bench/replicas.lua: what the checks of replicas cost: mlp-64 with Adam on two ranks.
--
--   ./dev bench replicas
--
-- Wanted: less than 1 % of the steps. Times are the shortest seen on rank 0: on a busy machine the
-- others say how busy it is.
local lt = require "ltrain"
local replicas = require "ltrain.trainer.replicas"
local strays = require "ltrain.core.strays"

local EVERY <const> = 50 -- steps between comparisons, the Trainer's default
local STEPS <const> = 1000

local MLP = lt.Module:extend("MLP")
function MLP:init()
  self.a, self.b, self.c = lt.nn.Linear(784, 256), lt.nn.Linear(256, 128), lt.nn.Linear(128, 10)
end
function MLP:forward(x)
  local hidden = self.b(self.a(x):relu()):relu()
  return self.c(hidden)
end
function MLP:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function MLP:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-3 }) end

local clock <const> = lt.runtime.clock

-- Seconds of one call of fn: the shortest of 200 rounds of n calls.
local function seconds(n, fn)
  local best = math.huge
  for _ = 1, 200 do
    local start = clock()
    for _ = 1, n do fn() end
    best = math.min(best, (clock() - start) / n)
  end
  return best
end

-- Seconds from the end of a batch to that of the next, the shortest.
local best, before = math.huge, nil
function MLP:on_train_batch_end()
  local now = clock()
  if before then best = math.min(best, now - before) end
  before = now
end

function MLP:on_train_end()
  local state, optimizer = self.trainer.running, self:optimizers()
  local compare = seconds(1, function() replicas.compare(state) end)
  local places = seconds(100, function() replicas.check_places(state) end)
  local look = seconds(100, function() strays.look(optimizer) end)
  if lt.dist.rank() > 0 then return end
  print(("a step %.1f us; comparing %.1f us every %d steps, places %.2f us, writers %.2f us")
    :format(best * 1e6, compare * 1e6, EVERY, places * 1e6, look * 1e6))
  print(("share of the steps: %.2f %%"):format((compare / EVERY + places + look) / best * 100))
end

local batches = {}
for i = 1, STEPS do
  batches[i] = { lt.rand(64, 784), lt.randint(0, 10, { 64 }) }
end
lt.Trainer { devices = 2, max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false }:fit(MLP(), batches)
