-- spec/bench/dist_fit.lua: ltrain's side of ./dev bench dist: a fit of lt.Trainer.
--
--   ltrain dist_fit.lua mlp|cnn|gpt RANKS WINDOWS STEPS
--
-- Prints samples a second of all ranks together, a line for each window of STEPS whole steps; on
-- several ranks also `shares HEADER CHECKS`, in percent of the median step.
local c = require "ltrain.c"
local costs_of = require "spec.bench.step_costs"
local lt = require "ltrain"
local models = require "spec.bench.torch_models"

local name, ranks, windows, steps = arg[1], tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4])
ranks = math.tointeger(ranks)
local WARM_UP <const> = 50
local READY <const> = 16 -- batches that come again and again

lt.seed(1)
c.runtime.set_threads(1)
local clock <const> = c.runtime.clock

local net = models.net(name)
function net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function net:configure_optimizers() return models.optimizer(name, self) end

local times, began = {}, nil -- seconds of a step, by window
function net:on_train_batch_end(_, _, index)
  local done = index + 1 - WARM_UP
  if done < 0 or done % steps ~= 0 then return end
  local now = clock()
  if began then times[#times + 1] = (now - began) / steps end
  began = now
end

function net:on_train_end()
  local trainer = self.trainer
  assert(trainer.world.threads == 1 and trainer.world_size == ranks)
  local costs = ranks > 1 and costs_of(trainer.running, self:optimizers())
  if not trainer.is_global_zero then return end
  for _, seconds in ipairs(times) do
    print(("window %.6g"):format(ranks * models.batch_size[name] / seconds))
  end
  if not costs then return end
  table.sort(times)
  local percent = 100 / times[#times // 2 + 1]
  print(("shares %.6g %.6g"):format(costs.header * percent,
    (costs.compare + costs.places + costs.writers) * percent))
end

-- A data set whose samples are the batches: ranks share it by its order, as they do any other.
local Batches = lt.data.Dataset:extend "Batches"
function Batches:init()
  self.ready = {}
  for i = 1, READY do self.ready[i] = models.batch(name) end
end
function Batches:__len() return ranks * (WARM_UP + windows * steps) end
function Batches:get(i) return self.ready[(i - 1) % READY + 1] end

lt.Trainer { devices = ranks, max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false }
  :fit(net, lt.data.DataLoader(Batches(), { collate = function(list) return list[1] end }))
