--- stdlib/trainer/run_files.lua: writes run.json (stdlib/runs/record.lua) and, in a fit,
--- config.json to the folder of a run.
--
-- Rank 0 writes it, where a logger has a folder. A fit has one when its parts are set up: one that
-- fails before that leaves no folder. The other loops are recorded when they end, if they, or a fit
-- before them, have written there.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local interrupt = require "ltrain.core.interrupt"
local overrides = require "ltrain.trainer.setup.overrides"
local records = require "ltrain.runs.record"

local run_files = {}

-- Loaded by the first fit, not by each Trainer that is made.
local function system_rows() return require "ltrain.runs.system_metrics" end

local LISTEN <const> = 0.2 -- seconds between looks into the inbox

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
    hosts = state.ranks.many and trainer.world.hosts or nil,
    seed = c.runtime.rng_state().seed, started = started, continues = continues(trainer),
    device = trainer.strategy.root_device,
    resumed_from = state.fn == "fit" and trainer.ckpt_path or nil,
  })
  console.copy_to(folder .. "/console.log")
end

-- What a fit's process measures of itself from now on, and on rank 0 the inbox through which it is
-- asked to stop or to save, where the command line wants that.
local function begin_system_rows(state)
  local trainer = state.trainer
  if trainer.fast_dev_run or not trainer.log_dir then return end
  state.system_rows = system_rows().begin { folder = trainer.log_dir, rank = trainer.global_rank,
    device = trainer.strategy.root_device, step = trainer.global_step,
    epoch = trainer.current_epoch }
  state.system_rows.row_due = state.system_rows.due
  if not (overrides.control and trainer.is_global_zero) then return end
  local inbox, message = c.runtime.inbox.open(trainer.log_dir)
  if not inbox then trainer:warn(message) end
  state.inbox = inbox or false
end

local function end_system_rows(state)
  if state.inbox then state.inbox:close() end
  if state.system_rows then
    system_rows().finish(state.system_rows, state.trainer.global_step, state.trainer.current_epoch)
  end
  state.system_rows, state.inbox = false, false
end

--- A loop begins.
function run_files.begin(state)
  state.began = c.runtime.time()
  local folder = folder_of(state)
  if state.fn ~= "fit" then return end
  if folder then
    open(state, folder, state.began)
    local text = require "ltrain.trainer.setup.resolved_config"(state.trainer, state.module,
      state.data_module)
    local ok, message = c.io.write_file(folder .. "/config.json", text)
    if not ok then state.trainer:warn(message) end
  end
  begin_system_rows(state)
end

--- The training data is there.
function run_files.note_data(state)
  local loader = state.data.train and state.data.train.loader
  local hash = state.trainer._record and folder_of(state)
    and require "ltrain.runs.fingerprint"(loader)
  if hash then records.note_data(state.trainer._record, hash) end
end

--- Something is due at a boundary: a row, or a look into the inbox. Returns whether a checkpoint is
--- asked for.
function run_files.beat(state)
  local p, saves, now = state.system_rows, false, c.runtime.clock()
  if now >= p.row_due then
    system_rows().write(p, state.trainer.global_step, state.trainer.current_epoch)
    p.row_due = p.due
  end
  local word = state.inbox and state.inbox:take()
  while word do
    if word == "stop" then interrupt.ask() end
    saves = saves or word == "save"
    word = state.inbox:take()
  end
  p.due = state.inbox and math.min(now + LISTEN, p.row_due) or p.row_due
  return saves
end

-- The files of the first callback that keeps a best one; those that are there.
local function checkpoints_of(trainer)
  local callback = trainer.checkpoint_callback
  local function there(path)
    return path and path ~= "" and trainer.strategy.checkpoint_io:exists(path) and path or nil
  end
  if not callback then return nil, nil end
  return there(callback.best_model_path), there(callback.last_model_path)
end

--- It ends: "finished", "failed" (with the error) or "interrupted".
function run_files.finish(state, status, err)
  local trainer, folder = state.trainer, folder_of(state)
  end_system_rows(state)
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

return run_files
