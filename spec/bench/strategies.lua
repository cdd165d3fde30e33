-- spec/bench/strategies.lua: a step of training on 2 ranks under each strategy, 1 thread each.
--
--   ./dev bench strategies [ROUNDS] [STEPS]      10 rounds of 100 steps
--
-- The model is mlp-64 of torch_models.lua with Adam, and one of 16 times the parameters. Fits of
-- the strategies take turns. Times are of rank 0: from the end of a batch to that of the next, the
-- shortest and the median of all rounds, and the processor's for a step, which says most on a busy
-- machine. local_sgd averages every 4 steps, which the shortest does not show.
local c = require "ltrain.c"
local lt = require "ltrain"
local models = require "spec.bench.torch_models"

local ROUNDS <const> = math.tointeger(tonumber(arg[1] or 10))
local STEPS <const> = math.tointeger(tonumber(arg[2] or 100))
local STRATEGIES <const> = { "ddp", "zero1", "local_sgd" }
local READY <const> = 16 -- batches that come again and again

c.runtime.set_threads(1)
local clock <const> = c.runtime.clock

local NETS <const> = {
  { "mlp-64", function() return models.net "mlp" end },
  { "mlp-64 of 1024 units", function()
    local nn = lt.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024),
      nn.ReLU(), nn.Linear(1024, 10))
  end },
}

local batches = {}
for i = 1, READY do batches[i] = models.batch "mlp" end

local Batches = lt.data.Dataset:extend "Batches"
function Batches:__len() return 2 * STEPS end
function Batches:get(i) return batches[(i - 1) % READY + 1] end

-- Seconds of each step of a fit, added to `times`, and the processor's of all.
local function measure(make, strategy, times)
  local net, before, busy = make(), nil, nil
  function net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
  function net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-3 }) end
  function net:on_train_batch_end()
    local now = clock()
    if before then times[#times + 1] = now - before end
    before, busy = now, busy or os.clock()
  end
  function net:on_train_end() times.busy = (times.busy or 0.0) + os.clock() - busy end
  lt.Trainer { devices = 2, max_epochs = 1, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false, strategy = strategy }
    :fit(net, lt.data.DataLoader(Batches(), { collate = function(list) return list[1] end }))
end

for _, row in ipairs(NETS) do
  local name, make = row[1], row[2]
  local times = {}
  for _, strategy in ipairs(STRATEGIES) do times[strategy] = {} end
  for _ = 1, ROUNDS do
    for _, strategy in ipairs(STRATEGIES) do measure(make, strategy, times[strategy]) end
  end
  for _, strategy in ipairs(STRATEGIES) do
    local list = times[strategy]
    table.sort(list)
    print(("%-24s %-10s shortest %8.1f us, median %8.1f us, processor %8.1f us"):format(name,
      strategy, list[1] * 1e6, list[#list // 2 + 1] * 1e6, list.busy / #list * 1e6))
  end
end
