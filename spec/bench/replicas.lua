-- spec/bench/replicas.lua: what the checks of replicas cost: mlp-64 with Adam on two ranks.
--
--   ./dev bench replicas
--
-- Wanted: less than 1 % of the steps. Times are the shortest seen on rank 0: on a busy machine the
-- others say how busy it is.
local costs_of = require "spec.bench.step_costs"
local lt = require "ltrain"
local models = require "spec.bench.torch_models"

local STEPS <const> = 1000

local net = models.net "mlp"
function net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function net:configure_optimizers() return models.optimizer("mlp", self) end

local clock <const> = require("ltrain.c").runtime.clock

-- Seconds from the end of a batch to that of the next, the shortest.
local best, before = math.huge, nil
function net:on_train_batch_end()
  local now = clock()
  if before then best = math.min(best, now - before) end
  before = now
end

function net:on_train_end()
  local costs = costs_of(self.trainer.running, self:optimizers())
  if lt.dist.rank() > 0 then return end
  print(("a step %.1f us; comparing %.2f us, places %.2f us, writers %.2f us"):format(best * 1e6,
    costs.compare * 1e6, costs.places * 1e6, costs.writers * 1e6))
  print(("share of the steps: %.2f %%"):format(
    (costs.compare + costs.places + costs.writers) / best * 100))
end

local batches = {}
for i = 1, STEPS do batches[i] = models.batch "mlp" end
lt.Trainer { devices = 2, max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false }:fit(net, batches)
