--- stdlib/callbacks/checkpoint_files.lua: the files of a ModelCheckpoint: names, the best k,
--- and removal.
--
-- A file stays as long as any callback of the Trainer refers to it. A name that another callback
-- has or has requested counts as taken, like that of an existing file. So does one that another
-- process is about to write: several runs may save in one folder.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local file_name = require "ltrain.callbacks.file_name"
local is_better = require "ltrain.core.is_better"
local tree = require "ltrain.core.tree"

local checkpoint_files = {}

-- Whether a file is the one that this run was resumed from.
local function is_source(trainer, path)
  local source = trainer.running.resumed_from
  return source ~= nil and c.io.same(path, source)
end

-- Whether a file is in our folder: what a resumed run had elsewhere belongs to that run.
local function is_ours(self, path)
  local start = self.dirpath .. "/"
  return path:sub(1, #start) == start and not path:find("/../", #self.dirpath, true)
end

-- A file of weights alone must not take the place of a whole state that the run continues.
local function must_stay(self, trainer, path)
  return self.save_weights_only and is_source(trainer, path)
end

--- Whether a callback counts on a file.
function checkpoint_files.holds(self, path)
  return path == self.best_model_path or path == self.last_model_path
    or path == self.exception_path or self.best_k_models[path] ~= nil
end

local function held_by_another(self, trainer, path)
  for _, callback in ipairs(trainer.callbacks) do
    if callback ~= self and callback.holds and callback:holds(path) then return true end
  end
  return false
end

-- A path that no file has, but `own`, which this save may write over; and with `claims` what ends
-- that other processes find it taken, called when the file is there.
local function free_path(self, trainer, name, own, claims)
  local path, version, release = ("%s/%s.ckpt"):format(self.dirpath, name), 0, nil
  local io = trainer.strategy.checkpoint_io
  local function is_taken()
    if path == own then return false end
    if io:exists(path) or held_by_another(self, trainer, path) then return true end
    if claims then release = io:claim(path) end
    return release == false
  end
  while must_stay(self, trainer, path) or self.enable_version_counter and is_taken() do
    version = version + 1
    path = ("%s/%s-v%d.ckpt"):format(self.dirpath, name, version)
  end
  return path, release or nil
end

-- The same where all ranks that are here ask: rank 0, which writes, decides.
local function agreed_path(self, trainer, name, own)
  local path, release
  if trainer.is_global_zero then path, release = free_path(self, trainer, name, own, true) end
  if trainer.world_size > 1 then path = trainer.strategy:broadcast(path or "") end
  self._claims[path] = release
  return path
end

-- The file is there, or will not be.
local function release(self, path)
  local ends = self._claims[path]
  self._claims[path] = nil
  if ends then ends() end
end

--- Forgets files that were asked for and will not be written: the state is what it was before.
function checkpoint_files.release_all(self)
  for path in pairs(self._claims) do release(self, path) end
  for i = #self._pending, 1, -1 do self._pending[i].undo() end
  self._pending = {}
end

--- Where the state of a fit that ends in an error goes, over that of an earlier one.
function checkpoint_files.exception_path(self, trainer)
  local path = self.dirpath .. "/on_exception.ckpt"
  local taken = must_stay(self, trainer, path) or held_by_another(self, trainer, path)
  return taken and free_path(self, trainer, "on_exception") or path
end

local function path_for(self, trainer, metrics, own)
  local name = file_name.format(self.filename or "{epoch}-{step}", metrics,
    self.auto_insert_metric_name)
  return agreed_path(self, trainer, name, own)
end

local function may_be_removed(self, trainer, path)
  return is_ours(self, path) and not is_source(trainer, path)
    and not checkpoint_files.holds(self, path) and not held_by_another(self, trainer, path)
end

-- A function that makes fields what they are now, and the scores of two files.
local function undo_of(self, fields, path, old)
  local before, models = {}, self.best_k_models
  local score, old_score = models[path], models[old or path]
  for _, name in ipairs(fields) do before[name] = self[name] or false end
  return function()
    for name, value in pairs(before) do self[name] = value or nil end
    self._unsent[path], self.best_k_models[path] = score, score
    if old then self.best_k_models[old] = old_score end
  end
end

--- Whether last.ckpt is a link to the file that was saved last.
function checkpoint_files.links_last(self)
  return self.save_last == "link" and self.save_top_k ~= 0
end

-- The path of last.ckpt, which this save may write over.
local function last_path(self, trainer)
  local path = self.last_model_path
  if not path or not is_ours(self, path) or must_stay(self, trainer, path) then
    path = agreed_path(self, trainer, "last")
  end
  return path
end

local function link_last(self, trainer, path, last)
  local ok, message = trainer.strategy.checkpoint_io:link(path, last)
  release(self, last)
  if not ok then errors.blame("ModelCheckpoint: save_last = 'link': %s", message) end
end

-- `undo`: for the case that the file is never written.
local function request(self, trainer, path, old, undo)
  local options = { weights_only = self.save_weights_only, agreed = true } -- all ranks ask
  local last_before = self.last_model_path
  local last = checkpoint_files.links_last(self) and last_path(self, trainer)
  if last then self.last_model_path = last end
  local asked = { undo = function()
    undo()
    if last then self.last_model_path = last_before end
  end }
  table.insert(self._pending, asked)
  trainer:request_checkpoint(path, options, function()
    release(self, path)
    if last then link_last(self, trainer, path, last) end
    for i, one in ipairs(self._pending) do
      if one == asked then table.remove(self._pending, i) break end
    end
    if self.verbose then trainer:say("ModelCheckpoint: saved " .. path) end
    if old and may_be_removed(self, trainer, old) then
      trainer.strategy.checkpoint_io:remove(old)
    end
  end)
end

-- Without a monitor: the newest is the best.
local function save_newest(self, trainer, metrics)
  local old = self.best_model_path
  local path = path_for(self, trainer, metrics, old)
  local undo = undo_of(self, { "best_model_path" }, path)
  self.best_model_path = path
  request(self, trainer, path, self.save_top_k == 1 and old or nil, undo)
end

-- The path with the worst (or best) score.
local function extreme(self, best)
  local found
  for path in tree.pairs(self.best_k_models) do
    local a, b = self.best_k_models[path], self.best_k_models[found]
    if not found or best and is_better(self.mode, a, b)
      or not best and is_better(self.mode, b, a) then
      found = path
    end
  end
  return found
end

local function count(models)
  local n = 0
  for _ in pairs(models) do n = n + 1 end
  return n
end

local SCORES <const> = { "best_model_path", "best_model_score", "kth_best_model_path", "kth_value" }

local function note_extremes(self, best, worst)
  local models = self.best_k_models
  self.best_model_path, self.best_model_score = best, models[best]
  self.kth_best_model_path, self.kth_value = worst, models[worst]
end

-- All are kept: a save costs the same however many there are.
local function save_one_more(self, trainer, metrics, score)
  local path = path_for(self, trainer, metrics)
  local undo = undo_of(self, SCORES, path)
  self.best_k_models[path], self._unsent[path] = score, score
  local best, worst = self.best_model_score, self.kth_value
  note_extremes(self, (not best or is_better(self.mode, score, best)) and path
    or self.best_model_path, (not worst or is_better(self.mode, worst, score)) and path
    or self.kth_best_model_path)
  request(self, trainer, path, nil, undo)
end

local function save_among_best(self, trainer, metrics, score)
  local models, old = self.best_k_models, nil
  if count(models) >= self.save_top_k then
    old = extreme(self, false)
    if not is_better(self.mode, score, models[old]) then return end
  end
  local path = path_for(self, trainer, metrics, old)
  local undo = undo_of(self, SCORES, path, old)
  if old then models[old] = nil end
  models[path] = score
  note_extremes(self, extreme(self, true), extreme(self, false))
  request(self, trainer, path, old, undo)
end

--- Requests the file for these metrics; `score`: the monitored one, nil without a monitor.
function checkpoint_files.save(self, trainer, metrics, score)
  if self.save_top_k == 0 then return end
  if not score then return save_newest(self, trainer, metrics) end
  if self.save_top_k == -1 then return save_one_more(self, trainer, metrics, score) end
  save_among_best(self, trainer, metrics, score)
end

--- Requests the newest as last.ckpt.
function checkpoint_files.save_last(self, trainer)
  local path = last_path(self, trainer)
  local undo = undo_of(self, { "last_model_path" }, path)
  self.last_model_path = path
  request(self, trainer, path, nil, undo)
end

-- What is known of the files.

checkpoint_files.STATE = {
  best_k_models = { map = "number", optional = true }, best_model_path = "string?",
  best_model_score = "number?", current_score = "number?", dirpath = "string?",
  kth_best_model_path = "string?", kth_value = "number?", last_model_path = "string?",
  last_step_saved = "integer?",
}

-- Those that are kept as they are.
local PLAIN <const> = {
  "best_model_path", "best_model_score", "current_score", "kth_best_model_path", "kth_value",
  "last_model_path", "last_step_saved",
}

-- The best and the worst, of many files that are all kept.
local function extremes_of(self)
  local models = {}
  for _, path in pairs { self.best_model_path, self.kth_best_model_path } do
    models[path] = self.best_k_models[path]
  end
  return models
end

--- A table of it. With save_top_k = -1 best_k_models has the best and the worst of the files only:
--- a checkpoint does not grow with those that were saved before.
function checkpoint_files.state_dict(self)
  local saved = {}
  for _, name in ipairs(PLAIN) do saved[name] = self[name] end
  saved.best_k_models = self.save_top_k == -1 and extremes_of(self) or self.best_k_models
  return saved
end

--- Takes that back.
function checkpoint_files.load_state_dict(self, saved)
  for _, name in ipairs(PLAIN) do self[name] = saved[name] end
  self.best_k_models = saved.best_k_models or {}
end

--- What rank 0 sends to the others; `to_all`: none is missing.
function checkpoint_files.to_send(self, to_all)
  local sent = checkpoint_files.state_dict(self)
  if self.save_top_k == -1 then
    for path, score in pairs(self._unsent) do sent.best_k_models[path] = score end
    if to_all then self._unsent = {} end
  end
  return sent
end

--- Another rank takes what rank 0 sent.
function checkpoint_files.receive(self, sent)
  local models = self.best_k_models
  checkpoint_files.load_state_dict(self, sent)
  if self.save_top_k ~= -1 then return end
  for path, score in pairs(sent.best_k_models) do models[path] = score end
  self.best_k_models, self._unsent = models, {}
end

return checkpoint_files
