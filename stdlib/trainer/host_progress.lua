--- stdlib/trainer/host_progress.lua: reports each batch to a host program that embeds the runtime,
--- as it begins.
--
-- A callback of every Trainer of the state, put there when the host asks for progress.
local Callback = require "ltrain.core.Callback"
local overrides = require "ltrain.trainer.setup.overrides"

local HostProgress = Callback:extend("HostProgress")

-- The host is rank 0's process.
HostProgress.all_ranks = false
HostProgress.keeps_epoch = true

function HostProgress:init(report)
  self.report = report
end

-- A loader without a length has math.huge batches: the host gets nil.
local function known(count)
  return count and math.tointeger(count)
end

function HostProgress:on_train_batch_start(trainer, _, _, batch_idx)
  self.report("train", trainer.current_epoch, batch_idx, known(trainer.num_training_batches))
end

for _, stage in ipairs { "validation", "test", "predict" } do
  local field = ("num_%s_batches"):format(stage == "validation" and "val" or stage)
  HostProgress[("on_%s_batch_start"):format(stage)] = function(self, trainer, _, _, batch, loader)
    local counts = trainer[field]
    self.report(stage, trainer.current_epoch, batch, known(counts and counts[loader]))
  end
end

--- Has report(stage, epoch, batch, batches) called before each batch of every Trainer to come.
return function(report)
  overrides.callbacks[#overrides.callbacks + 1] = HostProgress(report)
end
