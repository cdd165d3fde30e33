--- stdlib/trainer/saving/resume.lua: resolves `ckpt_path` (a path, "last" or "best") and loads the
--- checkpoint.
local c = require "ltrain.c"
local checkpoint = require "ltrain.trainer.saving.checkpoint"
local errors = require "ltrain.core.errors"
local overrides = require "ltrain.trainer.setup.overrides"
local record = require "ltrain.runs.record"
local run_json = require "ltrain.runs.run_json"
local stale_files = require "ltrain.trainer.saving.stale_files"
local version = require "ltrain.loggers.version"

local resume = {}

local function add_versions(list, root)
  for _, name in ipairs(root and c.io.list_folder(root) or {}) do
    if name:find "^version_%d+$" then
      list[#list + 1] = ("%s/%s/checkpoints"):format(root, name)
    end
  end
end

-- Folders where this or an earlier run of the script may have saved.
local function folders(trainer)
  local list = {}
  for _, callback in ipairs(trainer.callbacks) do
    if callback.saves_checkpoints and callback.dirpath then list[#list + 1] = callback.dirpath end
  end
  list[#list + 1] = trainer.default_root_dir .. "/checkpoints"
  for _, logger in ipairs(trainer.loggers) do add_versions(list, logger.root_dir) end
  return list
end

-- Folders of runs from before the default name of loggers changed.
local function old_folders(trainer)
  local list = {}
  for _, logger in ipairs(trainer.loggers) do
    add_versions(list, logger.root_dir and version.old_root_dir(logger))
  end
  return list
end

-- The checkpoints in these folders, whatever their names, the one that was written last first.
local function newest_first(list)
  local found = {}
  for _, folder in ipairs(list) do
    for _, name in ipairs(c.io.list_folder(folder) or {}) do
      local path = folder .. "/" .. name
      local time = name:find "%.ckpt$" and c.io.modified(path)
      if time then found[#found + 1] = { path = path, time = time, place = #found } end
    end
  end
  table.sort(found, function(a, b)
    if a.time ~= b.time then return a.time > b.time end
    return a.place > b.place
  end)
  return found
end

-- The checkpoint that was written last. Under the old name of the folder there may be files of
-- the project that has it.
local function find_last(trainer)
  local last = newest_first(folders(trainer))[1]
  if last then return last.path end
  for _, one in ipairs(newest_first(old_folders(trainer))) do
    if trainer.strategy.checkpoint_io:load(one.path) then return one.path end
  end
end

-- The best checkpoint of the run that began last, of those in the folders of this script.
local function recorded_best(trainer)
  local best, latest = nil, -math.huge
  for _, folder in ipairs(folders(trainer)) do
    local text = c.io.read_file(folder:gsub("[^/]*$", "") .. record.FILE)
    local info = text and c.io.json_decode(text, { plain = true })
    local of = type(info) == "table" and run_json.clean(info) or {}
    if of.best_checkpoint and (of.started or 0) > latest
      and c.io.kind(of.best_checkpoint) ~= nil then
      best, latest = of.best_checkpoint, of.started or 0
    end
  end
  return best
end

local function find_best(state)
  local callback = state.trainer.checkpoint_callback
  local path = callback and callback.best_model_path or recorded_best(state.trainer)
  if not path then
    errors.blame("%s: ckpt_path = 'best': no best checkpoint is known: fit first, or name a file",
      state.fn)
  end
  return path
end

local function find_word(state, wanted)
  if wanted == "best" then return find_best(state) end
  local path = find_last(state.trainer)
  if not path then
    if state.fn ~= "fit" then
      errors.blame("%s: ckpt_path = 'last': nothing was saved yet", state.fn)
    end
    state.trainer:warn("ckpt_path = 'last': nothing was saved yet: fit starts from the beginning")
  end
  return path
end

-- Rank 0's files count: it looks, for all.
local function find(state, wanted)
  if wanted ~= "best" and wanted ~= "last" then return wanted end
  local path = state.trainer.is_global_zero and find_word(state, wanted)
  return state.strategy:broadcast(path or false) or nil
end

-- What killed runs have left in the folders of this script, and in that of the file and beside it.
local function remove_leftovers(trainer, path)
  local list, all, seen = folders(trainer), {}, {}
  local folder = path:match "^(.+)/[^/]*$" or path:find "^/" and "/" or "."
  list[#list + 1] = folder
  add_versions(list, folder:match "^(.*)/version_%d+/checkpoints$")
  for _, one in ipairs(list) do
    for _, name in ipairs { one, one:match "^(.*/version_%d+)/checkpoints$" } do
      if not seen[name] then all[#all + 1], seen[name] = name, true end
    end
  end
  stale_files.remove(all)
end

-- What the fit resumes from as a table, and its path or name: a snapshot, or the checkpoint that is
-- asked for; nil where there is none yet.
local function load(state, wanted)
  local snapshots = state.snapshots
  if snapshots and snapshots:resumes() and not overrides.is_after(snapshots:step()) then
    return snapshots:load()
  end
  if type(wanted) ~= "string" then
    errors.blame("%s: ckpt_path must be a file, 'last' or 'best': got %s", state.fn,
      errors.show(wanted))
  end
  local path = find(state, wanted)
  if not path then return nil end
  local saved, message = state.strategy.checkpoint_io:load(path)
  if not saved then errors.blame("%s: cannot load the checkpoint: %s", state.fn, message) end
  if state.fn == "fit" and state.trainer.is_global_zero then
    remove_leftovers(state.trainer, path)
  end
  state.trainer.ckpt_path = path
  if overrides.resumes() and overrides.resume.note then
    state.trainer:say(overrides.resume.note:format(path))
  end
  state.resumed_from = c.io.follow(path) -- a link may lead elsewhere later
  return saved, path
end

-- Whether a new training begins with the weights of the file. A job that was stopped and started
-- again resumes whatever the script says.
local function weights_alone(state)
  local wanted = state.fit_args.weights_only
  if wanted ~= nil and type(wanted) ~= "boolean" then
    errors.blame("%s: weights_only must be true or false: got %s", state.fn, errors.show(wanted))
  end
  return wanted and not overrides.resumes()
    and not (state.snapshots and state.snapshots:resumes())
end

--- Loads the checkpoint that is asked for into the module. Returns what a fit has to take back of
--- it, and its path; nil when there is nothing, or the weights alone are wanted.
function resume.begin(state, wanted)
  local saved, path = load(state, wanted)
  if not saved then return nil end
  local _ <close> = errors.reading(path)
  if weights_alone(state) then
    checkpoint.restore_weights(state, saved)
    return nil
  end
  checkpoint.restore_model(state, saved)
  return saved, path
end

--- The newest file that a new process can continue from: one that is there and whole.
function resume.newest(state)
  local paths = { state.saved_path or nil }
  for _, callback in ipairs(state.callbacks) do
    for _, name in ipairs { "last_model_path", "best_model_path" } do
      paths[#paths + 1] = callback[name]
    end
  end
  paths[#paths + 1] = state.resumed_from
  for _, path in ipairs(paths) do
    if path ~= "" and c.io.kind(path) ~= nil then return path end
  end
  return nil
end

return resume
