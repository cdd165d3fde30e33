--- stdlib/trainer/logged/partial_metrics.lua: metrics that are still accumulating when a run is
--- saved, resumed, or returns to the script.
--
-- Each of several ranks holds its share. What is saved by agreement is all of them together; a save
-- of one rank alone (in a hook, on an exception) must not wait for others, and holds none. Where a
-- run resumes, rank 0 takes what was saved and the others begin with nothing.
local class = require "ltrain.core.class"
local data_ranks = require "ltrain.dist.data_ranks"
local dist = require "ltrain.dist"
local gather_values = require "ltrain.dist.gather_values"
local rank_reduction = require "ltrain.trainer.logged.rank_reduction"
local results = require "ltrain.trainer.logged.results"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local partial_metrics = {}

-- Adds a metric to the list, or the metrics that it shows each under its name.
local function add(list, key, value)
  if class.of(value) and class.has_method(value, "named_metrics") then
    for name, metric in tree.pairs(value:named_metrics()) do
      list[#list + 1] = { key = key .. "." .. name, metric = metric }
    end
  elseif class.of(value) and class.has_method(value, "joined") then
    list[#list + 1] = { key = key, metric = value }
  end
end

-- Metrics inside the module, with their paths.
local function metrics_of(module)
  local list = {}
  for _, entry in ipairs(walk.modules(module)) do
    for _, item in ipairs(entry.objects) do add(list, item.name, item.value) end
  end
  return list
end

--- The metrics inside a module: a list of {key = path, metric =}.
partial_metrics.of = metrics_of

-- Makes a metric begin with nothing; one of several steps keeps how many `saved` has (nil: it has).
local function begin_again(metric, saved)
  if not class.has_method(metric, "reset_all") then
    metric:reset()
    return
  end
  if saved then metric:load_state_dict(saved) end
  metric:reset_all()
end

local function own_metrics(list)
  local states = {}
  for _, item in ipairs(list) do states[item.key] = item.metric:state_dict() end
  return states
end

local function own_results(state, list)
  local res, names = state.trainer.train_results, {}
  if not res then return nil end
  for _, item in ipairs(list) do names[item.metric] = item.key end
  return results.state_dict(res, function(metric) return names[metric] end)
end

-- The metrics that have been updated, by key.
local function updated(list)
  local keys = {}
  for _, item in ipairs(list) do keys[item.key] = not item.metric._fresh end
  return keys
end

-- The states of all ranks together, for the metrics that this rank has.
local function merge_metrics(list, ranks)
  local states = {}
  for _, item in ipairs(list) do
    local parts, of = {}, {}
    local replicas = data_ranks.pick(ranks, function(one) return one.updated[item.key] end)
    for i, of_rank in ipairs(replicas) do
      local part = of_rank.metrics[item.key]
      if part then parts[#parts + 1], of[#of + 1] = part, i - 1 end
    end
    states[item.key] = item.metric:joined(parts, item.key, of)
  end
  return states
end

local function of_all(state, list)
  local ranks = gather_values {
    metrics = own_metrics(list), results = own_results(state, list) or {}, updated = updated(list),
  }
  if not state.trainer.is_global_zero then return nil end
  local lists = {}
  for i, of_rank in ipairs(ranks) do lists[i] = of_rank.results end
  return { metrics = merge_metrics(list, ranks), results = rank_reduction.saved(lists) }
end

--- What a checkpoint keeps: { results =, metrics = }. `agreed`: all ranks are here, and rank 0 gets
--- what they have together, the others nil. Without, of several ranks, { rank_zero_only = true }.
function partial_metrics.collect(state, agreed)
  if state.ranks.left_metrics then return state.ranks.left_metrics end
  local shared = dist.world_size() > 1 -- when forks have ended rank 0 has it all
  if shared and not agreed then return { rank_zero_only = true } end
  local list = metrics_of(state.module)
  if shared then return of_all(state, list) end
  return { metrics = own_metrics(list), results = own_results(state, list) }
end

-- `empty`: without what was gathered.
local function put_results(state, list, saved, empty)
  local metrics = {}
  for _, item in ipairs(list) do metrics[item.key] = item.metric end
  state.trainer.train_results = results.new(true)
  results.load_state_dict(state.trainer.train_results, saved, metrics, empty)
end

-- Whether this rank goes on with what was saved of all.
local function continues() return data_ranks.replica() == 0 end

--- Takes back what collect gave. A run that was saved in mid-epoch by one of several ranks begins
--- its metrics again, and says so.
function partial_metrics.restore(state, saved, path)
  local list, first = metrics_of(state.module), continues()
  if saved.rank_zero_only and state.progress.in_epoch then
    state.trainer:say(("fit: %s was saved in mid-epoch by rank 0 alone: the metrics of epoch %d "
      .. "cover only its remaining batches"):format(path, state.trainer.current_epoch))
  end
  if saved.results then put_results(state, list, saved.results, not first) end
  for _, item in ipairs(list) do
    local own = saved.metrics and saved.metrics[item.key]
    if own and first then
      item.metric:load_state_dict(own)
    else
      begin_again(item.metric, own)
    end
  end
end

--- Forks of one process have its metrics too: only rank 0 keeps them.
function partial_metrics.begin_forked(state)
  if not state.ranks.many or continues() then return end
  local list = metrics_of(state.module)
  local saved = own_results(state, list)
  if saved then put_results(state, list, saved, true) end
  for _, item in ipairs(list) do begin_again(item.metric) end
end

--- The end of a fit of ranks that continue: what they have together is kept for files that are
--- saved later, when ranks do not wait for each other. All ranks call it.
function partial_metrics.leave(state)
  if state.ranks.many then state.ranks.left_metrics = partial_metrics.collect(state, true) or {} end
end

--- Forks end with the run: rank 0 takes what they have. All ranks call it.
function partial_metrics.end_forked(state)
  if not state.ranks.many then return end
  local list = metrics_of(state.module)
  local saved = of_all(state, list)
  if not saved then return end
  if state.trainer.train_results then put_results(state, list, saved.results) end
  for _, item in ipairs(list) do item.metric:load_state_dict(saved.metrics[item.key]) end
end

return partial_metrics
