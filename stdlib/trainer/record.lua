--- stdlib/trainer/record.lua: run.json in the folder of a run (stdlib/runs/record.lua).
--
-- Rank 0 writes it, where a logger has a folder. A fit has one when its parts are set up: one that
-- fails before that leaves no folder. The other loops are recorded when they end, if they, or a fit
-- before them, have written there.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local records = require "ltrain.runs.record"

local record = {}

-- Whether the folder is there, and has more in it than it was made with.
local function is_used(folder)
  return #(c.io.kind(folder) == "folder" and c.io.list_folder(folder) or {}) > 0
end

local function folder_of(state)
  local trainer = state.trainer
  if not trainer.is_global_zero or trainer.fast_dev_run then return nil end
  return trainer.log_dir
end

local function continues(trainer)
  for _, logger in ipairs(trainer.loggers) do
    if logger.resumed then return true end
  end
  return false
end

local function open(state, folder, started)
  local trainer = state.trainer
  trainer._record = records.begin(trainer._record, {
    folder = folder, fn = state.fn, ranks = state.ranks.many and trainer.world_size or 1,
    seed = c.runtime.rng_state().seed, started = started, continues = continues(trainer),
    resumed_from = state.fn == "fit" and trainer.ckpt_path or nil,
  })
  console.copy_to(folder .. "/console.log")
end

--- A loop begins.
function record.begin(state)
  state.began = c.runtime.time()
  local folder = folder_of(state)
  if folder and state.fn == "fit" then open(state, folder, state.began) end
end

-- Scores and paths of the first callback that keeps a best file.
local function checkpoints_of(trainer)
  local callback = trainer.checkpoint_callback
  if not callback then return nil, nil end
  local best = callback.best_model_path ~= "" and callback.best_model_path or nil
  local last = callback.last_model_path ~= "" and callback.last_model_path or nil
  return best, last
end

--- It ends: "finished", "failed" (with the error) or "interrupted".
function record.finish(state, status, err)
  local trainer, folder = state.trainer, folder_of(state)
  if not folder or not state.began then return end
  if state.fn ~= "fit" then
    if not is_used(folder) then return end
    open(state, folder, state.began)
  end
  if not trainer._record then return end
  if err ~= nil then console.copy(("ltrain: %s\n"):format(c.runtime.error_text(err))) end
  local best, last = checkpoints_of(trainer)
  records.finish(trainer._record, { status = status, error = err, epoch = trainer.current_epoch,
    step = trainer.global_step, best_checkpoint = best, last_checkpoint = last })
end

return record
