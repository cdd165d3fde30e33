--- stdlib/callbacks/BasePredictionWriter.lua: the base class of callbacks that write predictions.
--
--   local lt = require "ltrain"
--   local Writer = lt.callbacks.BasePredictionWriter:extend("Writer")
--   function Writer:write_on_batch_end(trainer, module, prediction, batch_indices)
--     print(table.concat(batch_indices, " "), table.concat(prediction:tolist(), " "))
--   end
--   local net = lt.nn.Identity()
--   function net:predict_step(batch) return batch[1] * 10 end
--   local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.tensor{5, 6, 7}), {batch_size = 2})
--   lt.Trainer{callbacks = {Writer("batch")}, logger = false, enable_progress_bar = false}
--     :predict(net, loader, {return_predictions = false})
--   -- prints: 1 2	50 60
--   -- prints: 3	70
--
-- A subclass defines write_on_batch_end, write_on_epoch_end or both. `batch_indices` are the
-- positions in the data set of the samples of a batch, as for `get`, on any rank; nil if they are
-- unknown, as for iterable data sets.
--
-- At the end of a batch each rank writes its own predictions. At the end, write_on_epoch_end is
-- called on rank 0 only, with all predictions in the order of the data; on other ranks only if
-- predictions are not gathered (use_distributed_sampler = false).
local Callback = require "ltrain.core.Callback"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local BasePredictionWriter = Callback:extend("BasePredictionWriter")

--- It runs on all ranks.
BasePredictionWriter.all_ranks = true

--- The predict loop determines the samples of each batch.
BasePredictionWriter.wants_batch_indices = true

BasePredictionWriter.__arguments = "| write_interval"

local OPTIONS <const> = {
  write_interval = { type = "string", default = "batch",
    choices = { "batch", "epoch", "batch_and_epoch" },
    doc = "call write_on_batch_end, write_on_epoch_end, or both" },
}

--- BasePredictionWriter{write_interval = "batch"}
function BasePredictionWriter:init(options)
  local interval = config.check(options, OPTIONS, "callbacks.BasePredictionWriter").write_interval
  self.write_interval = interval
  self.keeps_predictions = interval ~= "batch" -- whether or not predict returns them
end

--- To be overridden: writes what predict_step returned for a batch.
---@param batch_indices table|nil the positions of its samples
function BasePredictionWriter:write_on_batch_end(trainer, module, prediction, batch_indices, batch,
  batch_idx, dataloader_idx) -- luacheck: ignore 212
  errors.blame("%s: define write_on_batch_end, or set write_interval = 'epoch'",
    getmetatable(self).__name)
end

--- To be overridden: writes all predictions.
---@param predictions table what predict_step returned for each batch, by loader if many
---@param batch_indices table the positions of their samples, nested in the same way
function BasePredictionWriter:write_on_epoch_end(trainer, module, predictions,
  batch_indices) -- luacheck: ignore 212
  errors.blame("%s: define write_on_epoch_end, or set write_interval = 'batch'",
    getmetatable(self).__name)
end

function BasePredictionWriter:on_predict_batch_end(trainer, module, outputs, batch, batch_idx,
  dataloader_idx)
  if self.write_interval == "epoch" or outputs == nil then return end
  self:write_on_batch_end(trainer, module, outputs, trainer.running.loop.batch_indices, batch,
    batch_idx, dataloader_idx)
end

function BasePredictionWriter:on_predict_epoch_end(trainer, module, predictions)
  if self.write_interval == "batch" then return end
  if not trainer.is_global_zero and #predictions == 0 then return end
  self:write_on_epoch_end(trainer, module, predictions, trainer.running.loop.epoch_indices)
end

return BasePredictionWriter
