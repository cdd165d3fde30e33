--- stdlib/trainer/data/data_position.lua: the position of a run in its data, and how to resume from
--- it with another batch size or number of ranks.
--
-- A position is a count of samples of all ranks in the epoch's order. What counts batches (limits,
-- validation intervals) is computed again from it where a run resumes with another global batch.
local class = require "ltrain.core.class"
local data_ranks = require "ltrain.dist.data_ranks"
local elastic = require "ltrain.trainer.ranks.elastic"
local errors = require "ltrain.core.errors"
local loaders = require "ltrain.trainer.data.loaders"

local data_position = {}

--- Whether no batch of the epoch is left.
function data_position.is_over(progress)
  return progress.is_last or progress.left_out or false
end

-- Whether what the loader keeps is for the next pass.
local function is_between(state)
  local progress = state.progress
  return data_position.is_over(progress) or not state.data.pass and progress.batch == 0
end

-- What the loader wants to keep: before the batch that is running, which the run has not done yet;
-- after its pass, what it was at the end of it.
local function loader_state(state)
  local pass, source, done = state.data.pass, state.data.train, state.progress.batch
  if not pass and state.progress.loader then return state.progress.loader end
  if source and is_between(state) and class.has_method(source.loader, "state_after") then
    return source.loader:state_after()
  end
  if not pass then
    local last = source and source.last_pass
    return last and done > 0 and loaders.state(last) or nil
  end
  if pass.index == done then return loaders.state(pass) end
  return class.has_method(source.loader, "state_before") and source.loader:state_before(done)
    or pass.previous
end

--- What a checkpoint keeps: the loader's state, and how the data was cut.
function data_position.collect(state)
  local cut = { global_batch = state.data.global_batch, ranks = data_ranks.size() }
  return loader_state(state), cut
end

--- Remembers what a checkpoint kept, until the training data is there.
function data_position.restore(state, cut, path)
  elastic.check(state.progress.began)
  cut = cut or {}
  state.data.cut_before = { global_batch = cut.global_batch, path = path,
    ranks = state.progress.ranks }
end

-- Schedules that count steps would run another course.
local function check_schedules(state, before, now)
  if state.trainer.options.allow_batch_change or not state.automatic
    or elastic.allows_change(state, state.data.train.loader, now) then
    return
  end
  for _, config in ipairs(state.schedulers) do
    if config.interval == "step" then
      errors.blame("fit: %s was written with a global batch of %d, this run has %d: a scheduler "
        .. "that counts steps would behave differently: give global_batch_size = %d to the "
        .. "DataLoader, or allow_batch_change = true to the Trainer", before.path,
        before.global_batch, now, before.global_batch)
    end
  end
end

--- Whether the pass of an epoch that is over has to be opened, so that the loader knows its state.
function data_position.opens_again(state)
  local loader = state.data.train.loader
  return class.has_method(loader, "load_state_dict") and not class.has_method(loader, "state_after")
end

--- Called when the training data is there. The batches of a resumed run are counted as they
--- are cut now.
function data_position.take_up(state)
  local before, progress, source = state.data.cut_before, state.progress, state.data.train
  local now = source and loaders.global_batch(source, data_ranks.size())
  state.data.global_batch, state.data.cut_before = now, nil -- a loader is whole again after the fit
  if not before then return elastic.take_up(state, source, now) end
  if source then source.state_file = before.path end
  local _ <close> = errors.reading(before.path)
  if now and before.global_batch and now ~= before.global_batch then
    check_schedules(state, before, now)
    source.batch_before = before.global_batch
    if not state.ranks.many and before.ranks == data_ranks.size() then
      state.trainer:say(("global batch %d (%d in %s)"):format(now, before.global_batch,
        before.path))
    end
  end
  local field = progress.loader
  if field and progress.batch > 0 and not data_position.is_over(progress)
    and class.has_method(source.loader, "batches_before") then
    progress.batch = source.loader:batches_before(field)
  end
  if state.window:is_empty() and source.batch_size then state.window:set_nominal_batch(nil) end
  elastic.take_up(state, source, now, before.ranks)
end

return data_position
