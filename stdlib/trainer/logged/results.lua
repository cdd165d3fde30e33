--- stdlib/trainer/logged/results.lua: stores the values of `self:log` during a loop;
--- trainer/logged/metrics.lua computes metrics from them.
--
-- One accumulator ("item") per hook, name and eval loader. An epoch's mean is
-- sum(value * batch_size) / sum(batch_size) in doubles. On the host a value is read when logged
-- (that waits for nothing there); on a device it stays a tensor until it is shown, because
-- reading it would make the step wait.
local batches = require "ltrain.trainer.data.batches"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local data_ranks = require "ltrain.dist.data_ranks"
local errors = require "ltrain.core.errors"
local hooks = require "ltrain.core.hooks"
local rank_reduction = require "ltrain.trainer.logged.rank_reduction"
local reductions = require "ltrain.core.reductions"
local tree = require "ltrain.core.tree"

local results = {}

local is_tensor <const> = c.is_tensor

-- The options of `self:log`. `batch_size` may change from batch to batch, the others may not.
local FIXED <const> = {
  "prog_bar", "logger", "on_step", "on_epoch", "reduce_fx", "sync_dist", "add_dataloader_idx",
  "rank_zero_only", "enable_graph",
}
local OPTIONS <const> = { "batch_size", "sync_dist_group", "metric_attribute",
  table.unpack(FIXED) }
local REDUCE <const> = { mean = "mean", avg = "mean", min = "min", max = "max", sum = "sum" }

--- Accumulators of one pass. `train` says whose step values feed `callback_metrics`.
function results.new(train)
  return {
    train = train, order = {}, names = {}, plain = {}, loaders = { {} }, loader = 1, serial = 0,
    start = 0,
  }
end

--- A new batch has begun: what was logged before it is no longer this step's.
function results.begin_batch(res, is_here)
  res.serial = res.serial + 1
  if not is_here then res.start = res.start + 1 end
end

--- Values logged from here on belong to eval loader `index` of `count`.
function results.set_loader(res, index, count)
  res.loader, res.loader_count = index, count
  res.loaders[index] = res.loaders[index] or {}
end

--- Forgets all values (and resets the metrics logged at epoch level); keeps nothing.
function results.reset(res)
  for _, item in ipairs(res.order) do
    if item.metric and item.on_epoch then item.metric:reset() end
  end
  res.order, res.names, res.plain, res.loaders = {}, {}, {}, { {} }
  res.rows, res.start = nil, res.serial
end

--- Forgets what was logged in one hook, which will come again.
function results.forget(res, hook)
  local order = {}
  for _, item in ipairs(res.order) do
    if item.hook ~= hook then order[#order + 1] = item end
  end
  res.order = order
  for _, items in pairs(res.loaders) do items[hook] = nil end
end

-- One that has values of several steps is not logged, its values are: a loop resets what it logs.
local function is_metric(value)
  return class.has_method(value, "compute") and not class.has_method(value, "compute_all")
end

local function check_value(name, value)
  if type(value) == "number" or is_metric(value) then return end
  if is_tensor(value) and value:numel() == 1 then return end
  if type(name) ~= "string" then
    errors.blame("log: the name must be a string: got %s", errors.show(name))
  end
  errors.blame("log: '%s' needs a number, a tensor of one element or a metric: got %s", name,
    errors.show(value))
end

-- on_step and on_epoch after defaults, or an error when this hook does not allow them.
local function resolve_moments(hook, name, options)
  local allowed = hooks.by_name[hook] and hooks.by_name[hook].log
  if not allowed then
    errors.blame("log: not possible in %s: '%s'", hook or "code outside a hook", name)
  end
  local on_step, on_epoch = options.on_step, options.on_epoch
  if on_step == nil then on_step = allowed == "step" end
  if on_epoch == nil then on_epoch = allowed ~= "step" end
  if on_step and allowed == "epoch" then
    errors.blame("log: %s takes no on_step values: '%s'", hook, name)
  end
  if not on_step and not on_epoch then
    errors.blame("log: on_step and on_epoch are both false: '%s'", name)
  end
  return on_step, on_epoch
end

local function check_options(name, options)
  if type(name) ~= "string" then
    errors.blame("log: the name must be a string: got %s", errors.show(name))
  elseif name:find "%c" then
    errors.blame("log: the name must be without control characters: got %s", errors.show(name))
  end
  if type(options) ~= "table" or getmetatable(options) ~= nil then
    errors.blame("log: options must be a table, {prog_bar = true}: got %s", errors.show(options))
  end
  for key in pairs(options) do
    local unknown = errors.unknown(key, OPTIONS)
    if unknown then errors.blame("log: unknown option %s", unknown) end
  end
  if options.reduce_fx ~= nil and not REDUCE[options.reduce_fx] then
    errors.blame("log: reduce_fx must be 'mean', 'min', 'max' or 'sum': got %s",
      errors.show(options.reduce_fx))
  end
  for _, option in ipairs(FIXED) do
    local value = options[option]
    if value ~= nil and option ~= "reduce_fx" then
      config.argument(value, "boolean", "log", option)
    end
  end
end

-- Raises when a name without the loader's index was logged for another loader: callbacks would see
-- one value of two.
local function take_plain(res, name)
  local first = res.plain[name]
  if first and first ~= res.loader then
    errors.blame("log: '%s' is logged for loaders %d and %d under one name: with "
      .. "add_dataloader_idx = false each needs a different name", name, first, res.loader)
  end
  res.plain[name] = res.loader
end

local function shown_name(res, name, options)
  if (res.loader_count or 1) <= 1 then return name end
  if options.add_dataloader_idx == false then
    take_plain(res, name)
  else
    if name:find("/dataloader_idx_", 1, true) then
      errors.blame("log: the loader's index is added by itself: '%s'", name)
    end
    return ("%s/dataloader_idx_%d"):format(name, res.loader)
  end
  return name
end

-- Takes a name under which an item is shown: 'q' logged with on_step and on_epoch is 'q_step' and
-- 'q_epoch' too, which nothing else may be.
local function take_name(res, item, shown)
  local owner = res.names[shown]
  if owner and owner ~= item.name then
    errors.blame("log: '%s' and '%s' would both be shown as '%s': rename one of them", owner,
      item.name, shown)
  end
  res.names[shown] = item.name
end

local function take_names(res, item)
  take_name(res, item, item.name)
  take_name(res, item, item.step_name)
  take_name(res, item, item.epoch_name)
end

local function new_item(state, name, value, options)
  check_options(name, options)
  local res = state.loop.results
  local on_step, on_epoch = resolve_moments(state.hook, name, options)
  local item = {
    hook = state.hook, key = name, loader = res.loader, on_step = on_step, on_epoch = on_epoch,
    name = shown_name(res, name, options), prog_bar = options.prog_bar or false,
    logger = options.logger ~= false, reduce = REDUCE[options.reduce_fx or "mean"], given = {},
    sync_dist = options.sync_dist or false, rank_zero_only = options.rank_zero_only or false,
  }
  local both = on_step and on_epoch
  item.step_name = both and item.name .. "_step" or item.name
  item.epoch_name = both and item.name .. "_epoch" or item.name
  for _, option in ipairs(FIXED) do item.given[option] = options[option] end
  take_names(res, item)
  local items = res.loaders[res.loader]
  items[state.hook] = items[state.hook] or {}
  items[state.hook][name] = item
  res.order[#res.order + 1] = item
  return item
end

local function check_same(item, options)
  local first = item.given
  for i = 1, #FIXED do
    local option = FIXED[i]
    if options[option] ~= first[option] then
      errors.blame("log: '%s' was logged in %s with another %s: %s, now %s", item.key,
        item.hook, option, tostring(first[option]), tostring(options[option]))
    end
  end
end

-- total and count of an item, after one more value of weight `weight`.
local function accumulate(item, value, weight)
  if weight == 0 then return end -- nothing of it counts, not even a nan
  local reduce, total = item.reduce, item.total
  if reduce == "mean" then
    item.total = (total or 0.0) + value * weight
    item.count = (item.count or 0) + weight
  elseif reduce == "sum" then
    item.total = (total or 0.0) + value
  elseif total == nil or value ~= value then
    item.total = value
  elseif total == total then
    item.total = (reduce == "min" and math.min or math.max)(total, value)
  end
end

-- The same on a device: total stays a tensor, nothing waits. Sums begin with zeros, so that the
-- first step computes what later ones do (devices that record compile it once).
local function accumulate_tensor(item, value, weight)
  if weight == 0 then return end
  local reduce, wide = item.reduce, value:to("f64"):reshape { 1 }
  if reduce == "mean" then
    wide = wide * weight
    item.count = (item.count or 0) + weight
  end
  if reduce == "min" then
    item.total = item.total and item.total:minimum(wide) or wide
  elseif reduce == "max" then
    item.total = item.total and item.total:maximum(wide) or wide
  else
    item.total = (item.total or c.zeros_like(wide)) + wide
  end
end

local function weigh(state, item, options)
  if item.reduce ~= "mean" then return 1 end
  local size = options.batch_size
  if size == nil then return batches.size(state, item) end
  if type(size) ~= "number" or size < 0 then
    errors.blame("log: batch_size must be a count: got %s", tostring(size))
  end
  return size
end

--- Puts the value of a step where callbacks and the bar find it.
function results.show_step(state, item, value)
  if state.loop.results.train then
    state.callback_metrics[item.name] = value
    state.callback_metrics[item.step_name] = value
  end
  if item.prog_bar then state.progress_bar_metrics[item.step_name] = value end
end

local function store_step(state, item, value)
  item.step_value, item.serial = value, state.loop.results.serial
  results.show_step(state, item, value)
end

local NONE <const> = {}

local function in_slices(state)
  return (state.ranks.slices or state.loop.in_microbatches) and state.loop.results.train
    or state.strategy.splits_batches
end

-- A step of several slices (deterministic = "world"), of microbatches, or of parts on several
-- devices, logs once in each: its value is that of those that were logged so far.
local function add_slice(state, item, value, weight)
  if not in_slices(state) or item.serial ~= state.loop.results.serial then return value, weight end
  if item.reduce ~= "mean" then return reductions[item.reduce](item.step_value, value), weight end
  if not item.step_weight then return value, weight end -- it was logged outside of slices
  local sum = item.step_weight + weight
  if sum == 0 then return value, sum end
  return (item.step_value * item.step_weight + value * weight) / sum, sum
end

-- The same of a metric.
local function slice_figure(state, item, metric)
  local again = item.serial == state.loop.results.serial
  item.slices = again and item.slices or {}
  table.insert(item.slices, metric:batch_states() or nil)
  return #item.slices > 1 and metric:figure_of(item.slices, item.key) or metric.batch_value
end

local function log_metric(state, item, metric)
  if state.ranks.many and not metric.figure_of then
    errors.blame("log: '%s' on several ranks needs an lt.Metric: got %s", item.key,
      errors.show(metric))
  end
  local now = metric.batch_value
  if item.on_step and in_slices(state) and metric.figure_of then
    now = slice_figure(state, item, metric)
  end
  item.metric, item.serial = metric, state.loop.results.serial
  if not item.on_step then return end
  if now == nil then now = metric:compute() end
  local later = is_tensor(now) and now.device ~= "cpu" and now:numel() == 1
  store_step(state, item, later and now:detach() or rank_reduction.value(item, now))
end

local function log(state, name, value, options)
  local res = state.loop.results
  if state.step_graph and state.step_graph:takes_log(name, value, options) then return end
  if not state.strategy:logs_here() then return end
  if state.ranks.many and options.rank_zero_only and data_ranks.replica() > 0 then return end
  local items = res.loaders[res.loader][state.hook]
  local item = items and items[name]
  check_value(name, value)
  if item then check_same(item, options) else item = new_item(state, name, value, options) end
  if type(value) == "table" then
    log_metric(state, item, value)
    return
  end
  local field = is_tensor(value)
  if field then
    value = value:detach()
    if value.device == "cpu" then value, field = rank_reduction.number(value), false end
    if field and state.strategy.splits_batches then value = value:to(state.strategy.devices[1]) end
  end
  local weight = (item.on_epoch or item.sync_dist and state.ranks.many or in_slices(state))
    and weigh(state, item, options)
  if item.on_step then
    local of_step, step_weight = add_slice(state, item, value, weight)
    store_step(state, item, of_step)
    item.step_weight = step_weight or nil
  end
  if item.on_epoch then
    local add = field and accumulate_tensor or accumulate
    add(item, value, weight)
  end
  item.serial = res.serial
end

local function running(trainer, what)
  local state = trainer.running
  if not state or not state.loop.results then
    local hook = state and state.hook
    errors.blame("%s: no loop of the Trainer is running%s", what, hook
      and (": nothing is logged in %s"):format(hook) or "")
  end
  return state
end

--- `self:log(name, value, options)` of a module that is attached to `trainer`.
function results.log(trainer, name, value, options)
  log(running(trainer, "log"), name, value, options or NONE)
end

--- `self:log_dict(values, options)`: logs each, in alphabetical order. A MetricCollection logs its
-- metrics.
function results.log_dict(trainer, values, options)
  local state = running(trainer, "log_dict")
  if type(values) ~= "table" or class.of(values) and not values.named_metrics then
    errors.blame("log_dict: a table of names and values is needed: got %s", errors.show(values))
  end
  if class.of(values) and values.named_metrics then values = values:named_metrics() end
  for name, value in tree.pairs(values) do log(state, name, value, options or NONE) end
end

--- What a checkpoint keeps of a pass that has begun: plain data. Metrics save themselves; here are
-- only their names, as name_of(metric) gives them.
function results.state_dict(res, name_of)
  local list, totals, steps = {}, rank_reduction.values_of(res.order)
  for i, item in ipairs(res.order) do
    local saved = rank_reduction.describe(item, totals[item])
    saved.serial = item.serial - res.serial -- 0: of the step that ran last
    saved.given = item.given
    saved.metric = item.metric and name_of(item.metric)
    saved.step_value = steps[item]
    saved.step_weight = item.step_weight
    list[i] = saved
  end
  return list
end

--- Takes that back; `metrics` has the metrics by name. `empty`: what is logged how, but no values.
function results.load_state_dict(res, list, metrics, empty)
  for _, saved in ipairs(list) do
    local item = {}
    for key, value in pairs(saved) do item[key] = value end
    item.serial, item.metric = math.min(saved.serial or -1, 0), metrics[saved.metric]
    if empty then
      item.total, item.count, item.step_value, item.step_weight = nil, nil, nil, nil
    end
    res.order[#res.order + 1] = item
    take_names(res, item)
    res.loaders[item.loader] = res.loaders[item.loader] or {}
    local items = res.loaders[item.loader]
    items[item.hook] = items[item.hook] or {}
    items[item.hook][item.key] = item
  end
end

return results
