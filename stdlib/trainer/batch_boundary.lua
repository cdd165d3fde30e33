--- stdlib/trainer/batch_boundary.lua: what happens between two batches: requested checkpoints,
--- Ctrl-C, changed callbacks.
local consensus = require "ltrain.trainer.ranks.consensus"
local c = require "ltrain.c"
local hook_calls = require "ltrain.trainer.hook_calls"
local checkpoint = require "ltrain.trainer.saving.checkpoint"
local interrupt = require "ltrain.core.interrupt"
local loaders = require "ltrain.trainer.data.loaders"
local loop = require "ltrain.trainer.loop"
local overrides = require "ltrain.trainer.setup.overrides"
local profiler_ranges = require "ltrain.core.profiler_ranges"
local run_files = require "ltrain.trainer.run_files"
local results = require "ltrain.trainer.logged.results"
local pending_writes = require "ltrain.trainer.saving.pending_writes"

local batch_boundary = {}

-- One file for two who ask for it: it holds what both want.
local function join(save, options, after)
  local before = save.options or {}
  options = options or {}
  save.options = { agreed = before.agreed or options.agreed,
    weights_only = before.weights_only and options.weights_only }
  save.after[#save.after + 1] = after
end

--- Asks for a file at the next boundary. `after()` runs once it is written, where it is written; of
--- a device that is some batches later.
--- options.agreed: all ranks ask for it, but those that have no sample in this step.
function batch_boundary.request_save(state, path, options, after)
  local saves = state.saves or {}
  state.saves = saves
  for _, save in ipairs(saves) do
    if save.path == path then return join(save, options, after) end
  end
  saves[#saves + 1] = { path = path, options = options, after = { after } }
end

-- Ranks that had no sample ran no hooks: they have not heard of files that the others agreed on.
-- Rank 0 writes: what is missing here needs no name.
local function hear_of_saves(state, where)
  local pass = state.data.pass
  if where ~= "batch" or not (pass and pass.partial) then return end
  local asked = {}
  for _, save in ipairs(state.saves or {}) do
    if save.options and save.options.agreed then
      asked[#asked + 1] = { agreed = true, weights_only = save.options.weights_only }
    end
  end
  local all = state.strategy:broadcast(asked)
  if #all > #asked then state.saves = state.saves or {} end
  for i = #asked + 1, #all do
    table.insert(state.saves, { path = "", options = all[i], after = {} })
  end
end

local function write_requested(state, where)
  if state.ranks.many then hear_of_saves(state, where) end
  local saves = state.saves
  if not saves then return end
  state.saves = false
  for _, save in ipairs(saves) do
    local options = save.options or {}
    local step = state.trainer.global_step
    table.insert(save.after, 1, function()
      state.saved_path = save.path
      if overrides.saved and not options.weights_only then
        overrides.saved(save.path, step, state.trainer.loggers)
      end
    end)
    local saving = checkpoint.save(state, save.path, { agreed = options.agreed,
      weights_only = options.weights_only, later = true })
    if saving then -- of a sharded one each rank has its own
      pending_writes.add(state, saving, state.trainer.is_global_zero and save.after or {})
    elseif state.trainer.is_global_zero then
      for _, after in ipairs(save.after) do after() end
    end
  end
end

-- By which a launcher asks its ranks to end, to start them again. After another one this may have
-- been the last round, whose snapshots end with the launchers.
local SIGUSR1 <const> = 10

-- Saves the run that a signal ends (Ctrl-C; nil: the same, on one rank); returns the path, nil when
-- there is nothing to save, or nothing may be, or the next round has a snapshot.
local function save_interrupted(state, signal)
  local trainer = state.trainer
  if state.fn ~= "fit" or state.loop.stage == "sanity_check" then return nil end
  -- In mid-validation: it will be done again, from its start.
  if state.loop.results ~= trainer.train_results then results.reset(state.loop.results) end
  local kept = state.snapshots and state.snapshots:stop()
  if kept and signal == SIGUSR1 then return nil end
  if trainer.options.enable_checkpointing == false then return nil end
  local refusal = state.nonfinite:why_not_saved() -- the same on all ranks
  if refusal then
    trainer:warn("interrupted: " .. refusal)
    return nil
  end
  local path = trainer:checkpoint_folder() .. "/interrupted.ckpt"
  checkpoint.save(state, path, { agreed = state.ranks.many })
  if not trainer.is_global_zero then return nil end -- another rank wrote it
  state.interrupted_path = path
  return path
end

local until_read <const> = setmetatable({}, { __close = function(_, err)
  interrupt.forbid(err)
end })

-- The next batch of a pass, as loaders.next; of several ranks as consensus.next. Reading may end at
-- any line of the data set: the batch that was being read is not part of the run yet, so the run is
-- saved as it was before. Several ranks end together, between batches.
local function read_batch(state, pass)
  local range <close> = profiler_ranges.open and profiler_ranges.open "dataloader_next" -- luacheck: ignore
  if state.ranks.many then return consensus.next(state, pass) end
  if not pass.rewinds then return loaders.next(pass) end
  state.save = state.save or function() return save_interrupted(state) end
  state.resume_point:begin_read() -- a sample that is being read has a seed of its own
  interrupt.allow(state.save)
  local _ <close> = until_read
  local batch, index, is_last = loaders.next(pass)
  state.resume_point:end_read()
  return batch, index, is_last
end

-- The time that this takes is what the process waits for batches.
local function next_batch(state, pass)
  local p = state.system_rows
  if not p then return read_batch(state, pass) end
  local began = c.runtime.clock()
  local batch, index, is_last = read_batch(state, pass)
  p.waited = p.waited + (c.runtime.clock() - began)
  return batch, index, is_last
end

--- The next batch of a pass; nil at its end. A pass without any is an error, unless other ranks may
--- have had some.
function batch_boundary.next(state, pass)
  local batch, index, is_last = next_batch(state, pass)
  if batch == nil and not state.ranks.many then loaders.refuse_nothing(pass, state.fn) end
  return batch, index, is_last
end

-- The checkpoint that somebody has asked for from outside.
local function save_asked(state)
  local trainer = state.trainer
  local path = ("%s/asked-epoch=%d-step=%d.ckpt"):format(trainer:checkpoint_folder(),
    trainer.current_epoch, trainer.global_step)
  batch_boundary.request_save(state, path, { agreed = state.ranks.many }, function()
    trainer:say("saved " .. path)
  end)
end

-- Of several ranks all save, when they have agreed on it with a step.
local function listen(state)
  local p, ranks = state.system_rows, state.ranks
  if p and c.runtime.clock() >= p.due and run_files.beat(state) then
    if ranks.many then ranks.asks_save = true else save_asked(state) end
  end
  if ranks.many and ranks.agreed.save then
    ranks.agreed.save = false
    save_asked(state)
  end
end

--- Between two batches ("batch", "eval") or epochs ("epoch").
function batch_boundary.reached(state, where)
  if hook_calls.is_stale(state) then hook_calls.resolve(state) end
  if state.pending_writes then pending_writes.poll(state) end
  if where == "eval" then
    if state.ranks.many then consensus.step(state, 0, 0) end
    listen(state)
  else
    listen(state)
    state.step_count:poll()
    loop.between(where, state.progress.train_batches)
    write_requested(state, where)
    if state.snapshots then state.snapshots:reached() end
  end
  local ends, signal = consensus.interrupted(state)
  if ends then
    interrupt.raise(save_interrupted(state, signal), state.ranks.many and signal or nil)
  end
end

return batch_boundary
