--- stdlib/trainer/eval_loop.lua: validation (within fit or alone) and test.
local batch_boundary = require "ltrain.trainer.batch_boundary"
local batches = require "ltrain.trainer.data.batches"
local c = require "ltrain.c"
local consensus = require "ltrain.trainer.ranks.consensus"
local exchange = require "ltrain.trainer.ranks.exchange"
local hook_calls = require "ltrain.trainer.hook_calls"
local loaders = require "ltrain.trainer.data.loaders"
local loop = require "ltrain.trainer.loop"
local metrics = require "ltrain.trainer.logged.metrics"
local module_step = require "ltrain.trainer.steps.module_step"
local results = require "ltrain.trainer.logged.results"

local eval_loop = {}

-- Hook names of the two stages, joined once.
local NAMES <const> = {}
for _, stage in ipairs { "validation", "test" } do
  NAMES[stage] = {
    step = stage .. "_step", start = "on_" .. stage .. "_start", stop = "on_" .. stage .. "_end",
    epoch_start = "on_" .. stage .. "_epoch_start", epoch_end = "on_" .. stage .. "_epoch_end",
    batch_start = "on_" .. stage .. "_batch_start", batch_end = "on_" .. stage .. "_batch_end",
    model_eval = "on_" .. stage .. "_model_eval", model_train = "on_" .. stage .. "_model_train",
  }
end

-- Puts each submodule back into the mode it had.
local until_left <const> = { __close = function(modes)
  for module, training in next, modes.before do
    if module.training ~= training then rawset(module, "training", training) end
  end
  modes.state.loop.modes_before = false
end }

--- The modes of all submodules, which they have again when what this returns is closed. On the way
--- out of an error too: a later fit trains with dropout. Files that are saved meanwhile have them.
function eval_loop.keep_modes(state)
  local before = {}
  for _, module in ipairs(state.module:modules()) do before[module] = module.training end
  state.loop.modes_before = before
  return setmetatable({ state = state, before = before }, until_left)
end

--- Puts the module in evaluation mode.
function eval_loop.enter_eval(state, hook)
  if state.hooks[hook] then hook_calls.method(state, hook) else state.module:eval() end
end

--- Where the module has a hook that puts it back: calls it in place of what keep_modes returned.
function eval_loop.leave_eval(state, hook, modes)
  if not state.hooks[hook] then return end
  hook_calls.method(state, hook)
  modes.before = {}
end

local function log_step_row(state)
  local row = not state.trainer.sanity_checking and metrics.eval_row(state)
  if row then metrics.log(state, row, state.progress.eval_rows) end
end

local function run_batch(state, names, batch, index, loader_idx)
  local progress = state.progress
  results.begin_batch(state.loop.results, batch ~= false)
  loop.begin_batch(state, "eval", progress.eval_batches)
  progress.eval_batches = progress.eval_batches + 1
  loop.set_batch(state, false, index)
  if batch then -- false: other ranks have a sample in this step, this one has none
    consensus.enter(state)
    batch = batches.transfer(state, batch, loader_idx)
    loop.set_batch(state, batch)
    hook_calls.hook(state, names.batch_start, batch, index, loader_idx)
    state.loop.outputs = module_step.run(state, names.step, batch, index, loader_idx)
    hook_calls.hook(state, names.batch_end, state.loop.outputs, batch, index, loader_idx)
    consensus.leave(state)
  end
  log_step_row(state)
  progress.eval_rows = progress.eval_rows + 1
  loop.end_batch(state)
  batch_boundary.reached(state, "eval")
end

local function run_loader(state, names, source, loader_idx, count)
  results.set_loader(state.loop.results, loader_idx, count)
  local pass = loaders.open(source, "eval", state.trainer.current_epoch, 0,
    state.progress.eval_batches)
  local _ <close> = setmetatable({}, { __close = function() loaders.close(pass) end })
  while true do
    local batch, index = batch_boundary.next(state, pass)
    if batch == nil then break end
    run_batch(state, names, batch, index, loader_idx)
  end
  results.set_loader(state.loop.results, 1, 1)
end

-- One table a loader: what was logged in its batches, and what was logged for all of them.
local function per_loader(found, count)
  local list = {}
  for i = 1, count do
    local own = {}
    for name, value in pairs(found.loaders[i] or {}) do own[name] = value end
    for name, value in pairs(found.shared) do own[name] = value end
    list[i] = own
  end
  return list
end

-- Calls on_..._epoch_end, which finds the metrics of the batches in trainer.callback_metrics where
-- some rank defines it. Returns the rows that the first look at what was logged returned.
local function end_pass(state, hook)
  local called = hook_calls.defined(state, hook) and true or false
  if not state.strategy:reduce_boolean(called, false) then return nil end
  local found = metrics.publish(state)
  hook_calls.hook(state, hook)
  return found.rows
end

-- The last hook. A file that is saved in it, in a fit, has this validation behind it.
local function end_run(state, hook)
  local pending = state.progress.pending
  if not pending then return hook_calls.hook(state, hook) end
  pending.validated = true
  hook_calls.saving_hook(state, hook)
end

local function run_all(state, names, sources)
  hook_calls.hook(state, names.start)
  hook_calls.hook(state, names.epoch_start)
  for i, source in ipairs(sources) do run_loader(state, names, source, i, #sources) end
  local rows = end_pass(state, names.epoch_end)
  local found = metrics.publish(state)
  if not state.trainer.sanity_checking then
    for _, kept in ipairs(rows or found.rows) do metrics.log(state, kept.row or {}, kept.at) end
    if next(found.log) ~= nil then metrics.log(state, found.log, state.progress.stepped) end
  end
  state.loop.evaluated = found.epoch -- for the progress bar
  end_run(state, names.stop)
  return per_loader(found, #sources)
end

local function count_batches(sources)
  local total = 0
  for _, source in ipairs(sources) do
    if source.count == nil then return math.huge end
    total = total + source.count
  end
  return total
end

-- What the loop around it had is there again, and what was logged is forgotten.
local until_run <const> = { __close = function(outer)
  local state = outer.state
  local found = state.loop.results
  state.loop.results = outer.results
  loop.set_batch(state, false, outer.batch_idx)
  loop.set_stage(state, outer.stage)
  results.reset(found)
end }

local function begin_pass(state, stage)
  local outer = { state = state, results = state.loop.results, stage = state.loop.stage,
    batch_idx = state.loop.batch_idx }
  state.loop.results = results.new(false)
  if outer.stage ~= "sanity_check" then loop.set_stage(state, stage) end
  return setmetatable(outer, until_run)
end

--- Runs all loaders once. `stage` is "validation" or "test". Returns a list of tables of metrics,
-- one a loader; nil when there is no batch.
function eval_loop.run(state, stage, sources)
  if count_batches(sources) == 0 then return nil end
  local names = NAMES[stage]
  local strategy = state.strategy
  strategy:sync_buffers(state.module)
  local _ <close> = exchange("evaluation", strategy.evaluation_scope, strategy, state.module)
  local _ <close> = begin_pass(state, stage)
  local modes <close> = eval_loop.keep_modes(state)
  eval_loop.enter_eval(state, names.model_eval)
  local found
  do
    local _ <close> = c.no_grad()
    found = run_all(state, names, sources)
  end
  eval_loop.leave_eval(state, names.model_train, modes)
  return found
end

return eval_loop
