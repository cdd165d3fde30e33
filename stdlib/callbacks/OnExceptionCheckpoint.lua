--- stdlib/callbacks/OnExceptionCheckpoint.lua: saves a checkpoint if fit ends with an error: the
-- state before the batch that failed, from which the run can be resumed.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local config = require "ltrain.core.config"

local OnExceptionCheckpoint = Callback:extend("OnExceptionCheckpoint")

OnExceptionCheckpoint.all_ranks = true
OnExceptionCheckpoint.keeps_epoch = true
OnExceptionCheckpoint.save_on_exception = true

local OPTIONS <const> = {
  dirpath = { type = "string", doc = "folder; by default that of the run's checkpoints" },
  filename = { type = "string", default = "on_exception", doc = "name, without .ckpt" },
}

OnExceptionCheckpoint.__arguments = "| dirpath filename"

--- OnExceptionCheckpoint{dirpath = "saved"}
function OnExceptionCheckpoint:init(options)
  local o = config.check(options, OPTIONS, "callbacks.OnExceptionCheckpoint")
  self.dirpath, self.filename = o.dirpath, o.filename
end

--- The path of the file.
function OnExceptionCheckpoint:ckpt_path(trainer)
  return ("%s/%s.ckpt"):format(self.dirpath or trainer:checkpoint_folder(), self.filename)
end

function OnExceptionCheckpoint:on_exception(trainer)
  if trainer.interrupted or trainer.fast_dev_run or trainer.running.fn ~= "fit"
    or not (trainer.training or trainer.validating) or c.runtime.device_faulted() then
    return
  end
  local path = self:ckpt_path(trainer)
  trainer:save_checkpoint(path)
  if trainer.is_global_zero then trainer:say("OnExceptionCheckpoint: saved " .. path) end
end

return OnExceptionCheckpoint
