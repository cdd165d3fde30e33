--- stdlib/runs/init.lua: lt.runs: reading the folders of runs.
--
--   local lt = require "ltrain"
--   local net = lt.nn.Linear(2, 1)
--   function net:training_step(x)
--     local loss = self(x):square():mean()
--     self:log("loss", loss)
--     return loss
--   end
--   function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
--   lt.Trainer{max_epochs = 2, log_every_n_steps = 1}:fit(net, {lt.ones(4, 2)})
--   local run = lt.runs.read("ltrain_logs/version_0")
--   print(run.status, run.names[1], #run.metrics.loss.values)
--   -- prints: finished	loss	2
--
-- Only the folder is read, so it may come from another machine; a run that is still training, or
-- was killed, is read up to its last rows.
local better_mode = require "ltrain.runs.better_mode"
local c = require "ltrain.c"
local complete_lines = require "ltrain.core.complete_lines"
local config = require "ltrain.core.config"
local entries = require "ltrain.runs.run_json"
local errors = require "ltrain.core.errors"
local is_better = require "ltrain.core.is_better"
local media = require "ltrain.loggers.media"
local metrics_csv = require "ltrain.runs.metrics_csv"
local record = require "ltrain.runs.record"
local strict_arity = require "ltrain.core.strict_arity"
local tree = require "ltrain.core.tree"

local runs = {}

local DEPTH <const> = 4 -- of folders in which runs are looked for
local FILES <const> = { record.FILE, "metrics.csv", "metrics.jsonl" }

-- A file of JSON as a table: {} where it is absent, nil and a reason where it is not one.
local function read_json(path)
  if not c.io.kind(path) then return {} end
  local text, message = c.io.read_file(path, record.MOST_BYTES)
  if not text then return nil, message end
  local value, wrong = c.io.json_decode(text, { plain = true })
  if type(value) ~= "table" then
    return nil, ("%s: is not an object of JSON%s"):format(path, wrong and ": " .. wrong or "")
  end
  return value
end

local function refuse_path(path)
  if not c.io.kind(path) then return ("%s: there is no such folder"):format(path) end
  return ("%s: is not the folder of a run: it has no %s and no metrics.csv"):format(path,
    record.FILE)
end

--- Whether a folder is the folder of a run.
function runs.is_run(path)
  for _, name in ipairs(FILES) do
    if c.io.kind(path .. "/" .. name) == "file" then return true end
  end
  return false
end

--- Read the folder of a run. Returns a table: `path`; `status` ("running", "finished", "failed",
--- "interrupted", "killed": its process ended without a status, "unknown": without run.json),
--- `error`, `started` and `seconds`, its duration; `info`, the contents of run.json; `hparams`;
--- `names` of metrics, sorted; `metrics`, by name {steps =, epochs =, values =}, three lists.
--- Returns nil and the reason if there is no run.
---@param path string
function runs.read(path)
  config.argument(path, "string", "runs.read", "path")
  if not runs.is_run(path) then return nil, refuse_path(path) end
  local entry, message = read_json(path .. "/" .. record.FILE)
  message = not entry and message or entry and entries.refuse(path, entry)
  if message then return nil, message end
  entries.clean(entry)
  local hparams, metrics, wrong
  hparams, message = read_json(path .. "/hparams.json")
  metrics, wrong = metrics_csv(path .. "/metrics.csv")
  if not hparams or not metrics then return nil, message or wrong end
  local run = { path = path, info = entry, status = entries.status(entry), error = entry.error,
    hparams = hparams, metrics = metrics, names = tree.keys(metrics), started = entry.started }
  local ended = run.status == "running" and c.runtime.time() or entry.ended
    or c.io.modified(path .. "/metrics.csv") or c.io.modified(path .. "/console.log")
  run.seconds = entry.started and ended and math.max(ended - entry.started, 0)
  return run
end

local function add_runs(list, path, depth)
  if runs.is_run(path) then
    list[#list + 1] = path
    return
  end
  if depth == 0 then return end
  for _, name in ipairs(c.io.list_folder(path) or {}) do
    local below = (path == "." and "" or path .. "/") .. name
    if name:sub(1, 1) ~= "." and c.io.kind(below) == "folder" then
      add_runs(list, below, depth - 1)
    end
  end
end

-- version_2 before version_10.
local function by_number(a, b)
  local function wide(digits) return ("%20s"):format(digits) end
  return a:gsub("%d+", wide) < b:gsub("%d+", wide)
end

--- The paths of the runs in a folder, sorted by name: the folder itself, or those below it. Returns
--- nil and the reason if there are none.
---@param path string
function runs.find(path)
  config.argument(path, "string", "runs.find", "path")
  local list = {}
  path = #path > 1 and path:gsub("/+$", "") or path
  if c.io.kind(path) == "folder" then add_runs(list, path, DEPTH) end
  if #list == 0 then
    return nil, c.io.kind(path) and ("%s: there is no run in it"):format(path) or refuse_path(path)
  end
  table.sort(list, by_number)
  return list
end

--- The last value of a metric, or nil.
function runs.last(run, name)
  local series = run.metrics[name]
  return series and series.values[#series.values]
end

--- The best value of a metric and its step: the lowest (`mode` "min") or highest ("max"). By
--- default names with "acc", "f1", "auroc", "auc", "precision", "recall", "iou", "psnr", "ssim",
--- "bleu", "map", "r2", "mcc" and "ndcg" in them are maximized. NaN is ignored; nil if there are no
--- other values.
function runs.best(run, name, mode)
  if mode ~= nil and mode ~= "min" and mode ~= "max" then
    errors.blame("runs.best: mode must be 'min' or 'max': got %s", errors.show(mode))
  end
  local series, best, at = run.metrics[name], nil, nil
  mode = mode or better_mode(name)
  for i, value in ipairs(series and series.values or {}) do
    if value == value and (not best or is_better(mode, value, best)) then
      best, at = value, series.steps[i]
    end
  end
  return best, at
end

--- The entries of media/index.jsonl, a list: {kind = "image", "text" or "histogram", name =, step
--- =} with `files` (paths below media/) of images, `text` of texts, `edges` and `counts` of
--- histograms. Entries with fields of other types, and images that are not files below media/, are
--- omitted.
function runs.media(run)
  local folder, list = run.path .. "/" .. media.FOLDER, {}
  local index = run.path .. "/" .. media.INDEX
  local text = c.io.kind(index) and c.io.read_file(index)
  for line in complete_lines(text or "") do
    local entry = media.decode(line)
    local files = entry and entry.files
    for i = files and #files or 0, 1, -1 do
      if c.io.stat_below(folder, files[i]) ~= "file" then table.remove(files, i) end
    end
    if entry and (entry.kind ~= "image" or #files > 0) then list[#list + 1] = entry end
  end
  return list
end

return strict_arity.all(runs)
