--- stdlib/trainer/predict_loop.lua: runs predict_step over the data and gathers what it returns.
--
-- Ranks get whole batches, each with the number that it has in one process: draws and hooks go by
-- it, so that what is predicted does not depend on the number of ranks.
local batch_boundary = require "ltrain.trainer.batch_boundary"
local batches = require "ltrain.trainer.data.batches"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local consensus = require "ltrain.trainer.ranks.consensus"
local dist = require "ltrain.dist"
local eval_loop = require "ltrain.trainer.eval_loop"
local hook_calls = require "ltrain.trainer.hook_calls"
local loaders = require "ltrain.trainer.data.loaders"
local loop = require "ltrain.trainer.loop"
local module_step = require "ltrain.trainer.steps.module_step"
local predictions = require "ltrain.trainer.logged.predictions"
local shards = require "ltrain.trainer.data.shards"

local predict_loop = {}

-- The positions in the data set of the samples of a batch that was read; nil where the loader does
-- not know them.
local function indices_of(source, index)
  local loader = source.loader
  if not class.has_method(loader, "batch_indices") then return nil end
  return loader:batch_indices(source.turns and source.number(index) or index)
end

-- `count`: the batches before it, of all loaders.
local function run_batch(state, batch, index, loader_idx, count)
  loop.begin_batch(state, "predict", count)
  batch = batches.transfer(state, batch, loader_idx)
  loop.set_batch(state, batch, index)
  hook_calls.hook(state, "on_predict_batch_start", batch, index, loader_idx)
  local outputs = module_step.run(state, "predict_step", batch, index, loader_idx)
  hook_calls.hook(state, "on_predict_batch_end", outputs, batch, index, loader_idx)
  return outputs
end

local function run_loader(state, source, loader_idx, keeps)
  local progress = state.progress
  local before = progress.predict_batches -- by the loaders before this one
  local pass = loaders.open(source, "predict", 0, 0, progress.predict_batches)
  local _ <close> = setmetatable({}, { __close = function() loaders.close(pass) end })
  local kept = predictions.new(state, source, keeps.outputs)
  while true do
    local batch, index = batch_boundary.next(state, pass)
    if batch == nil then break end
    local number = batch and shards.number_of(source, index)
    if number then
      consensus.enter(state)
      local indices = keeps.indices and indices_of(source, index) or nil
      state.loop.batch_indices = indices
      local outputs = run_batch(state, batch, number, loader_idx, before + number)
      predictions.add(kept, number, outputs, indices)
      consensus.leave(state)
      progress.predict_batches = before + number + 1
    end
    loop.end_batch(state)
    batch_boundary.reached(state, "eval")
    predictions.end_batch(kept)
  end
  if state.ranks.many then
    progress.predict_batches = dist.all_reduce(progress.predict_batches, { op = "max" })
  end
  return predictions.finish(kept)
end

-- Callbacks may want what the caller does not.
local function what_is_kept(state, wanted)
  local keeps = { outputs = wanted, indices = false }
  for _, callback in ipairs(state.trainer.callbacks) do
    if callback.keeps_predictions then keeps.outputs = true end
    if callback.wants_batch_indices then keeps.indices = true end
  end
  return keeps
end

--- Runs all loaders once. Returns the list of outputs, one a batch; with several loaders a list of
-- such lists. Of several ranks, rank 0 has them all; the lists of the others are empty. nil if the
-- caller does not want them.
function predict_loop.run(state, sources)
  local wanted = state.fit_args.return_predictions ~= false
  if #sources == 0 then return wanted and {} or nil end -- limit_predict_batches = 0
  local keeps = what_is_kept(state, wanted)
  loop.set_stage(state, "predict")
  local _ <close> = eval_loop.keep_modes(state)
  eval_loop.enter_eval(state, "on_predict_model_eval")
  local _ <close> = c.no_grad()
  local lists, indices = {}, {}
  hook_calls.hook(state, "on_predict_start")
  hook_calls.hook(state, "on_predict_epoch_start")
  for i, source in ipairs(sources) do
    lists[i], indices[i] = run_loader(state, source, i, keeps)
  end
  lists = #lists == 1 and lists[1] or lists
  state.loop.epoch_indices = #indices == 1 and indices[1] or indices
  hook_calls.hook(state, "on_predict_epoch_end", lists)
  hook_calls.hook(state, "on_predict_end")
  return wanted and lists or nil
end

return predict_loop
