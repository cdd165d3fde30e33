--- stdlib/trainer/data/sources.lua: finds the loaders of a run, and how many of their batches are
--- used.
--
-- First what was passed to fit (or validate, ...), then the DataModule's dataloader hook, then the
-- module's own.
local DataLoader = require "ltrain.data.DataLoader"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local data_position = require "ltrain.trainer.data.data_position"
local errors = require "ltrain.core.errors"
local hook_calls = require "ltrain.trainer.hook_calls"
local loaders = require "ltrain.trainer.data.loaders"
local shards = require "ltrain.trainer.data.shards"
local tree = require "ltrain.core.tree"

local sources = {}

local places <const> = c.runtime.places

local LIMITS <const> = {
  train = "limit_train_batches", val = "limit_val_batches", test = "limit_test_batches",
  predict = "limit_predict_batches",
}

-- Fields of the Trainer with the loaders of the call.
local DATALOADERS <const> = {
  train = "train_dataloader", val = "val_dataloaders", test = "test_dataloaders",
  predict = "predict_dataloaders",
}

local function ask(state, kind)
  local hook, data = kind .. "_dataloader", state.data_module
  if state.fit_args[kind] ~= nil then return state.fit_args[kind], hook end
  if data then
    local value = hook_calls.data(state, hook)
    places.source = data[hook]
    return value, hook
  end
  local value
  if state.hooks[hook] then value = hook_calls.method(state, hook) end
  places.source = state.module[hook]
  return value, hook
end

-- The runs that loaders serve: one in the middle of another has its own place in the data.
local serving <const> = setmetatable({}, { __mode = "k" })

-- A loader of the library that serves another loop already, which is in the middle of it: a copy.
local function own_loader(state, kind, loader)
  if not class.is_a(loader, DataLoader) and not loaders.is_combined(loader) then
    return loader
  end
  local run, served = serving[loader], state.data.served[loader]
  if run and run ~= state or served and served ~= kind then return loader:copy() end
  serving[loader], state.data.served[loader] = state, kind
  return loader
end

--- The end of a run.
function sources.release(state)
  for loader in next, state.data.served do
    if serving[loader] == state then serving[loader] = nil end
  end
end

-- The loader or the table of loaders of the call, without those that serve another loop.
local function own_loaders(state, kind, value)
  local _, first = next(type(value) == "table" and getmetatable(value) == nil and value or {})
  if not class.is_a(first, DataLoader) then return own_loader(state, kind, value) end
  local own = {}
  for key, loader in tree.pairs(value) do own[key] = own_loader(state, kind, loader) end
  return own
end

local function refuse_empty(state, source)
  if source.length == 0 then
    errors.blame("%s: %s has no batches: the data set is empty, or smaller than one batch with "
      .. "drop_last", state.fn, source.where)
  end
end

-- Overfitting is about the same few batches in each epoch.
local function stop_shuffling(state, source)
  local loader = source.loader
  local list = loaders.is_combined(loader) and loader:flattened() or { loader }
  for _, one in ipairs(list) do
    if type(one) == "table" and one.shuffle then
      state.trainer:warn("overfit_batches: the training loader shuffles: it no longer does")
      one.shuffle = false
    end
  end
end

local function limit_of(state, kind)
  local options = state.trainer.options
  local overfit = options.overfit_batches
  if overfit ~= 0 and (kind == "train" or kind == "val") then
    return overfit, "overfit_batches"
  end
  return state.trainer[LIMITS[kind]], LIMITS[kind]
end

--- Whether there is data of a kind to be asked for, and a limit that leaves some of it.
function sources.defined(state, kind)
  local hook, data = kind .. "_dataloader", state.data_module
  if limit_of(state, kind) == 0 then return false end
  if state.fit_args[kind] ~= nil then return true end
  if data then return data[hook] ~= nil end
  return state.hooks[hook] and true or false
end

--- The list of sources of a kind ("train", "val", "test", "predict"), limits applied; nil when
-- there is no data of that kind. A limit of 0 asks for no evaluation data.
function sources.load(state, kind)
  state.trainer[DATALOADERS[kind]] = nil
  if kind ~= "train" and limit_of(state, kind) == 0 then return {} end
  local value, where = ask(state, kind)
  if state.ranks.many then shards.compare_given(state, kind, value, where) end
  if value == nil then
    places.source = nil
    return nil
  end
  value = own_loaders(state, kind, value)
  if kind == "train" then value = loaders.together(value) end
  state.trainer[DATALOADERS[kind]] = value
  local list = shards.sources(state, kind, value, where)
  local limit, option = limit_of(state, kind)
  for _, source in ipairs(list) do
    refuse_empty(state, source)
    if kind == "train" and option == "overfit_batches" then stop_shuffling(state, source) end
    loaders.limit(source, limit, option)
    shards.count_rounds(source)
    shards.cut_short(state, source, kind)
  end
  places.source = nil
  return list
end

local function counts(list)
  local numbers = {}
  for i, source in ipairs(list or {}) do numbers[i] = source.count or math.huge end
  return numbers
end

--- Loads the training data; raises when there is none.
function sources.load_train(state)
  local trainer = state.trainer
  local list = sources.load(state, "train")
  if not list then
    local data = state.data_module
    if data and data.train_dataloader then
      errors.blame("fit: train_dataloader returned nothing: return a loader")
    end
    errors.blame("fit: no training data: pass a loader or a DataModule, or define "
      .. "train_dataloader")
  end
  state.data.train = list[1]
  trainer.num_training_batches = counts(list)[1]
  state.validation:set_batches(list[1].count)
  local every = trainer.log_every_n_steps
  if list[1].count and list[1].count > 0 and list[1].count < every and #trainer.loggers > 0
    and not state.data.warned_short then
    state.data.warned_short = true
    trainer:warn(("an epoch has %d batches, fewer than log_every_n_steps = %d: step values reach "
      .. "the loggers only every %d steps"):format(list[1].count, every, every))
  end
end

-- Batches of each loader that are validated before training.
local function sanity_counts(trainer)
  local most, numbers = trainer.num_sanity_val_steps, {}
  if most == -1 then most = math.huge end
  for i, count in ipairs(trainer.num_val_batches) do numbers[i] = math.min(most, count) end
  return numbers
end

--- Loads the validation data, if there is a validation_step.
function sources.load_val(state)
  local trainer = state.trainer
  state.data.val_epoch = trainer.current_epoch
  if not state.hooks.validation_step then
    if state.fit_args.val ~= nil then
      trainer:warn("fit: validation data was given, but there is no validation_step")
    end
    return
  end
  state.data.val = sources.load(state, "val")
  trainer.num_val_batches = counts(state.data.val)
  trainer.num_sanity_val_batches = sanity_counts(trainer)
  if not state.data.val and trainer.limit_val_batches ~= 0 then
    trainer:warn("fit: there is a validation_step, but no validation data: it does not run")
  end
end

--- Whether this fit validates: there is a validation_step, and data for it.
function sources.validates(state)
  if state.data.val_epoch then return state.data.val ~= nil and #state.data.val > 0 end
  if state.data.expects_val ~= nil then return state.data.expects_val end
  return state.hooks.validation_step and sources.defined(state, "val") or false
end

--- The pass over the training data from where the run stands; closed when the second value is.
function sources.open_train(state)
  local progress = state.progress
  local pass = loaders.open(state.data.train, "train", state.trainer.current_epoch, progress.batch,
    progress.train_batches, progress.loader)
  state.data.pass, progress.loader = pass, nil
  return pass, setmetatable({}, { __close = function()
    loaders.close(pass)
    state.data.pass = false
  end })
end

-- Validation data is asked for in the first epoch that validates; that there is none is said at
-- once. All ranks ask when one has some, which is where they see that others have none.
local function load_val_once(state)
  if state.data.val_epoch then return end
  state.data.expects_val = state.strategy:reduce_boolean(sources.validates(state) and true, false)
  if state.validation:is_epoch_due() or not sources.validates(state) then
    sources.load_val(state)
  end
end

--- Loads what fit needs and has not loaded yet.
function sources.load_fit(state)
  if not state.data.train then sources.load_train(state) end
  data_position.take_up(state)
  load_val_once(state)
  state.data.loaded_epoch = state.trainer.current_epoch
end

-- Whether an epoch in which data is to be loaded again has begun since epoch `loaded`.
local function reload_due(state, loaded)
  local every = state.trainer.options.reload_dataloaders_every_n_epochs
  return every > 0 and state.trainer.current_epoch // every > loaded // every
end

--- At the start of an epoch: loads the training data again when reload_dataloaders_every_n_epochs
--- says so.
function sources.reload_train(state)
  if not reload_due(state, state.data.loaded_epoch) then return end
  sources.load_train(state)
  state.data.loaded_epoch = state.trainer.current_epoch
end

--- Before a validation: loads its data, for the first time or again.
function sources.load_val_due(state)
  local known = state.data
  if not known.val_epoch or reload_due(state, known.val_epoch) then sources.load_val(state) end
end

--- Loads what validate, test or predict needs; raises when there is nothing.
function sources.load_eval(state, kind)
  local list = sources.load(state, kind)
  if not list then
    errors.blame("%s: no data: pass a loader or a DataModule, or define %s_dataloader", state.fn,
      kind)
  end
  local name = kind == "predict" and "num_predict_batches" or ("num_%s_batches"):format(kind)
  state.trainer[name] = counts(list)
  return list
end

--- The same source, at most `count` batches of it (-1: all that are used anyway).
function sources.first(source, count)
  local copy = {}
  for key, value in pairs(source) do copy[key] = value end
  if count ~= -1 then copy.count = math.min(copy.count or count, count) end
  return copy
end

return sources
