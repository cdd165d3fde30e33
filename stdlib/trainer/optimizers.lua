--- stdlib/trainer/optimizers.lua: reads what `configure_optimizers` returned, steps the schedulers.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local hook_calls = require "ltrain.trainer.hook_calls"
local tree = require "ltrain.core.tree"

local optimizers = {}

local places <const> = c.runtime.places
local has_method <const> = class.has_method

local SCHEDULER_KEYS <const> = {
  "scheduler", "interval", "frequency", "monitor", "strict", "name", "reduce_on_plateau",
}
local PAIR_KEYS <const> = { "optimizer", "lr_scheduler", "monitor" }

local function is_optimizer(value)
  return has_method(value, "step") and type(value.param_groups) == "table"
end

local function is_scheduler(value)
  return has_method(value, "step") and not is_optimizer(value) and not rawget(value, "__name")
end

local function is_plateau(scheduler)
  local meta = getmetatable(scheduler)
  return scheduler.reduce_on_plateau == true
    or type(meta) == "table" and meta.__name == "ReduceLROnPlateau"
end

local function is_plain(value)
  return type(value) == "table" and getmetatable(value) == nil
end

local function drop_unknown(state, config, known, what)
  local kept = {}
  for key, value in tree.pairs(config) do
    local unknown = errors.unknown(key, known)
    if unknown then
      state.trainer:warn(("configure_optimizers: left out of %s: the unknown key %s"):format(what,
        unknown))
    else
      kept[key] = value
    end
  end
  return kept
end

local function check_config(config, manual, state)
  local interval, frequency = config.interval, math.tointeger(config.frequency)
  if interval ~= "epoch" and interval ~= "step" then
    errors.blame("configure_optimizers: interval must be 'epoch' or 'step': got %s",
      errors.show(interval))
  elseif not frequency or frequency < 1 then
    errors.blame("configure_optimizers: frequency must be a positive integer: got %s",
      errors.show(config.frequency))
  elseif config.reduce_on_plateau and not config.monitor and not manual then
    errors.blame("configure_optimizers: %s needs monitor, the name of a logged value",
      errors.show(config.scheduler))
  elseif not (has_method(config.scheduler, "state_dict")
    and has_method(config.scheduler, "load_state_dict")) then
    errors.blame("configure_optimizers: a scheduler needs state_dict and load_state_dict: got %s",
      errors.show(config.scheduler))
  elseif manual and (config.monitor or config.reduce_on_plateau) then
    state.trainer:warn("configure_optimizers: in manual optimization the script steps schedulers: "
      .. "monitor has no effect")
  end
end

local function read_scheduler(state, value, monitor)
  local config
  if is_scheduler(value) then
    config = { scheduler = value }
  elseif is_plain(value) then
    config = drop_unknown(state, value, SCHEDULER_KEYS, "the table of a scheduler")
  end
  if not config or not is_scheduler(config.scheduler) then
    local given = config and config.scheduler or value
    errors.blame("configure_optimizers: a scheduler, or a table with scheduler, is needed: got "
      .. "%s%s", errors.show(given), has_method(given, "step") and ": call it with the optimizer"
      or "")
  end
  config.interval, config.frequency = config.interval or "epoch", config.frequency or 1
  if config.monitor == nil then config.monitor = monitor end
  if config.strict == nil then config.strict = true end
  if config.reduce_on_plateau == nil then
    config.reduce_on_plateau = is_plateau(config.scheduler)
  end
  check_config(config, not state.automatic, state)
  return config
end

-- " with the key 'optimiser'; did you mean 'optimizer'?" of a table that has such a key, or "".
local function hint(value)
  if not is_plain(value) then return "" end
  for key in tree.pairs(value) do
    local text = errors.did_you_mean(key, PAIR_KEYS)
    if text ~= "" then return (" with the key %s%s"):format(errors.show(key), text) end
  end
  return is_plain(value[1]) and hint(value[1]) or ""
end

-- What the loops and checkpoints ask of an optimizer besides step.
local function add_optimizer(found, optimizer)
  for _, name in ipairs { "zero_grad", "state_dict", "load_state_dict" } do
    if not has_method(optimizer, name) then
      errors.blame("configure_optimizers: an optimizer needs zero_grad, state_dict and "
        .. "load_state_dict: got %s without %s", errors.show(optimizer), name)
    end
  end
  found.optimizers[#found.optimizers + 1] = optimizer
end

local function add_pair(state, found, pair)
  if not is_optimizer(pair.optimizer) then
    errors.blame("configure_optimizers: a table needs optimizer: got %s%s",
      errors.show(pair.optimizer), hint(pair))
  end
  pair = drop_unknown(state, pair, PAIR_KEYS, "the returned table")
  add_optimizer(found, pair.optimizer)
  if pair.lr_scheduler ~= nil then
    local config = read_scheduler(state, pair.lr_scheduler, pair.monitor)
    found.schedulers[#found.schedulers + 1] = config
  end
end

local function add_lists(state, found, opts, schedulers)
  if is_optimizer(opts) then opts = { opts } end
  if is_scheduler(schedulers) or is_plain(schedulers) and schedulers.scheduler then
    schedulers = { schedulers }
  elseif schedulers ~= nil and not is_plain(schedulers) then
    errors.blame("configure_optimizers: a scheduler or a list of them is needed: got %s",
      errors.show(schedulers))
  end
  for _, optimizer in ipairs(opts) do
    if not is_optimizer(optimizer) then
      errors.blame("configure_optimizers: an optimizer is needed: got %s", errors.show(optimizer))
    end
    add_optimizer(found, optimizer)
  end
  for _, scheduler in ipairs(schedulers or {}) do
    found.schedulers[#found.schedulers + 1] = read_scheduler(state, scheduler)
  end
end

local function wrong(value)
  errors.blame("configure_optimizers: return an optimizer, a list of them, {optimizer =, "
    .. "lr_scheduler =}, a list of such tables, or two lists: got %s%s", errors.show(value),
    hint(value))
end

-- Two results, or one table of two lists, are optimizers and schedulers.
local function read(state, found, first, second)
  if first == nil then
    state.trainer:warn("configure_optimizers returned nothing: fit runs without an optimizer")
  elseif is_optimizer(first) then
    add_lists(state, found, first, second)
  elseif not is_plain(first) then
    wrong(first)
  elseif first.optimizer ~= nil then
    add_pair(state, found, first)
  elseif second ~= nil or is_optimizer(first[1]) then
    add_lists(state, found, first, second)
  elseif is_plain(first[1]) and first[1].optimizer ~= nil then
    for _, pair in ipairs(first) do add_pair(state, found, pair) end
  elseif is_plain(first[1]) and is_optimizer(first[1][1]) then
    add_lists(state, found, first[1], first[2])
  else
    wrong(first)
  end
end

-- `text`: what to say of a scheduler whose optimizer is not there.
local function check_owners(found, text)
  for _, config in ipairs(found.schedulers) do
    local known = config.scheduler.optimizer == nil
    for _, optimizer in ipairs(found.optimizers) do
      known = known or config.scheduler.optimizer == optimizer
    end
    if not known then
      errors.blame(text, errors.show(config.scheduler))
    end
  end
end

local function use(state, found)
  state.optimizers, state.schedulers, state.read_schedulers = found.optimizers, found.schedulers, {}
  for _, config in ipairs(found.schedulers) do state.read_schedulers[config] = true end
end

local function check_count(state, found, where)
  if state.automatic and #found.optimizers > 1 then
    errors.blame("%s: %d optimizers need manual optimization: set self.automatic_optimization = "
      .. "false", where, #found.optimizers)
  end
end

--- Calls `configure_optimizers`; sets state.optimizers and state.schedulers (lists).
function optimizers.configure(state)
  local found = { optimizers = {}, schedulers = {} }
  local first, second = hook_calls.method(state, "configure_optimizers")
  places.source = state.module.configure_optimizers
  read(state, found, first, second)
  check_count(state, found, "configure_optimizers")
  check_owners(found, "configure_optimizers: the optimizer of %s is not among the returned ones")
  use(state, found)
  places.source = nil
end

--- Whether a list of schedulers' tables is the one that the loop steps.
function optimizers.are_read(state, configs)
  if configs ~= state.schedulers then return false end
  for i = 1, #configs do
    if not state.read_schedulers[configs[i]] then return false end
  end
  return true
end

--- Sets both to what a script has put into the Trainer: a list of optimizers, and one of schedulers
--- or their tables.
function optimizers.replace(state, list, configs)
  local found = { optimizers = list, schedulers = {} }
  if not is_plain(list) or not is_plain(configs) then
    errors.blame("trainer.%s: must be a list: got %s",
      is_plain(list) and "lr_scheduler_configs" or "optimizers",
      errors.show(is_plain(list) and configs or list))
  end
  for _, optimizer in ipairs(list) do
    if not is_optimizer(optimizer) then
      errors.blame("trainer.optimizers: an optimizer is needed: got %s", errors.show(optimizer))
    end
  end
  check_count(state, found, "trainer.optimizers")
  for i, config in ipairs(configs) do
    found.schedulers[i] = state.read_schedulers[config] and config or read_scheduler(state, config)
  end
  check_owners(found, "trainer.optimizers: the optimizer of %s is not among them: set "
    .. "trainer.lr_scheduler_configs too")
  use(state, found)
end

-- The value a plateau scheduler is to see, as rank 0 has it; nil when it is not there and need not
-- be.
local function monitored(state, config)
  local metrics = state.trainer.callback_metrics
  local value = state.strategy:broadcast(metrics[config.monitor])
  if value ~= nil then return value end
  local names = tree.keys(metrics)
  local text = ("lr_scheduler: nothing called '%s' was logged; there is: %s%s"):format(
    config.monitor, #names > 0 and table.concat(names, ", ") or "nothing",
    errors.did_you_mean(config.monitor, names))
  if config.strict then errors.blame(text) end
  state.trainer:warn(text)
end

--- Steps the schedulers of an interval ("step" or "epoch") whose turn it is. `count` is the number
-- of that interval, from 1: optimizer windows, or epochs.
function optimizers.step_schedulers(state, interval, plateau, count)
  for _, config in ipairs(state.schedulers) do
    if config.interval == interval and config.reduce_on_plateau == plateau
      and count % config.frequency == 0 then
      local metric
      if config.monitor and plateau then metric = monitored(state, config) end
      if metric ~= nil or not plateau then
        hook_calls.method(state, "lr_scheduler_step", config.scheduler, metric)
      end
    end
  end
end

return optimizers
