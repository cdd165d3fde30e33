--- stdlib/callbacks/GradientAccumulationScheduler.lua: sets the number of accumulated batches by
--- epoch.
local Callback = require "ltrain.core.Callback"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local GradientAccumulationScheduler = Callback:extend("GradientAccumulationScheduler")

--- It runs on all ranks: it changes what is trained.
GradientAccumulationScheduler.all_ranks = true
GradientAccumulationScheduler.keeps_epoch = true

GradientAccumulationScheduler.__arguments = "scheduling"

--- GradientAccumulationScheduler{[0] = 1, [4] = 2}: epochs (from 0) and the number of batches per
--- optimizer step from then on; {scheduling = {...}} is the same.
function GradientAccumulationScheduler:init(scheduling)
  if type(scheduling) ~= "table" or next(scheduling) == nil then
    errors.blame("callbacks.GradientAccumulationScheduler: a table of epochs and numbers of "
      .. "batches is needed: got %s", errors.show(scheduling))
  end
  self.scheduling = {}
  for epoch, factor in next, scheduling do
    if math.type(epoch) ~= "integer" or epoch < 0 or math.type(factor) ~= "integer"
      or factor < 1 then
      errors.blame("callbacks.GradientAccumulationScheduler: epochs must be integers from 0, "
        .. "numbers of batches from 1: got [%s] = %s", errors.show(epoch), errors.show(factor))
    end
    self.scheduling[epoch] = factor
  end
  self.scheduling[0] = self.scheduling[0] or 1
end

--- The number of batches of an optimizer step in an epoch.
function GradientAccumulationScheduler:get_accumulate_grad_batches(epoch)
  local factor
  for _, first in ipairs(tree.keys(self.scheduling)) do
    if first <= epoch then factor = self.scheduling[first] end
  end
  return factor
end

function GradientAccumulationScheduler:on_fit_start(trainer)
  if trainer.options.accumulate_grad_batches ~= 1 then
    errors.blame("GradientAccumulationScheduler: the Trainer has accumulate_grad_batches = %d: "
      .. "leave it out", trainer.options.accumulate_grad_batches)
  end
  trainer.accumulate_grad_batches = self:get_accumulate_grad_batches(trainer.current_epoch)
end

-- A run that resumes within an epoch has its number before the first batch.
function GradientAccumulationScheduler:on_train_start(trainer)
  trainer.accumulate_grad_batches = self:get_accumulate_grad_batches(trainer.current_epoch)
end

function GradientAccumulationScheduler:on_train_epoch_start(trainer)
  trainer.accumulate_grad_batches = self:get_accumulate_grad_batches(trainer.current_epoch)
end

return GradientAccumulationScheduler
