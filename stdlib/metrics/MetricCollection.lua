--- stdlib/metrics/MetricCollection.lua: a table of metrics that are updated with the same batches.
--
--   local lt = require "ltrain"
--   local o = {num_classes = 3, average = "macro"}
--   local metrics = lt.metrics.MetricCollection({
--     precision = lt.metrics.Precision(o), recall = lt.metrics.Recall(o), f1 = lt.metrics.F1(o),
--   }, {prefix = "val_"})
--   metrics:update(lt.tensor{2, 1, 0, 1}, lt.tensor{2, 1, 0, 0})
--   print(("%.3f"):format(metrics:compute().val_f1))
--   -- prints: 0.778
--
-- `self:log_dict(metrics)` logs all of them. Metrics with the same states (here
-- all three) share them: they are recognised by their class and options, never by values.
local Metric = require "ltrain.metrics.Metric"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local deferred_sums = require "ltrain.metrics.deferred_sums"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"
local metric_plot = require "ltrain.metrics.metric_plot"
local schema = require "ltrain.core.schema"
local tree = require "ltrain.core.tree"

local MetricCollection = class.extend(nil, "MetricCollection")

local OPTIONS <const> = {
  prefix = { type = "string", default = "", doc = "prefix of names" },
  postfix = { type = "string", default = "", doc = "suffix of names" },
}

-- An item of the list: a metric, its name, and the prefix and postfix of names in its value.
local function new_item(item, o)
  return { name = o.prefix .. item.name .. o.postfix, metric = item.metric,
    own = item.own or item.name,
    prefix = o.prefix .. (item.prefix or ""), postfix = (item.postfix or "") .. o.postfix }
end

-- Adds the metrics of a table, and of collections in it, to `list`.
local function add(list, metrics, o)
  for k, metric in elements.each(metrics) do
    if metric == nil then
      errors.blame("metrics.MetricCollection: element %d must be a metric: got nil", k)
    end
  end
  for name, metric in tree.pairs(metrics) do
    local of = class.of(metric)
    if type(name) ~= "string" and of then name = of.__name:lower() end
    if class.is_a(metric, MetricCollection) then
      for _, item in ipairs(metric._list) do list[#list + 1] = new_item(item, o) end
    elseif class.is_a(metric, Metric) then
      list[#list + 1] = new_item({ name = name, metric = metric }, o)
    else
      errors.blame("metrics.MetricCollection: '%s' must be a metric: got %s", tostring(name),
        errors.show(metric))
    end
  end
end

-- Groups of metrics with the same states; the first of each is updated.
local function groups_of(list)
  local groups, by_key = {}, {}
  for _, item in ipairs(list) do
    local metric = item.metric
    local key = metric.counts_key and metric:counts_key()
    local group = key and by_key[key]
    if not group then
      group = {}
      groups[#groups + 1] = group
      if key then by_key[key] = group end
    end
    group[#group + 1] = metric
  end
  return groups
end

--- MetricCollection({acc = Accuracy(), f1 = F1()}, {prefix = "val_"}); in a list each has the name
--- of its class.
function MetricCollection:init(metrics, options)
  local o = config.check(options, OPTIONS, "metrics.MetricCollection")
  if type(metrics) ~= "table" or getmetatable(metrics) then
    errors.blame("metrics.MetricCollection: a table of metrics is needed: got %s",
      errors.show(metrics))
  end
  self._list = {}
  add(self._list, metrics, o)
  table.sort(self._list, function(a, b) return a.name < b.name end)
  for i = 2, #self._list do
    if self._list[i].name == self._list[i - 1].name then
      errors.blame("metrics.MetricCollection: two metrics are called '%s'", self._list[i].name)
    end
  end
  self._groups = groups_of(self._list)
end

-- Whether the states of two metrics of a group are equal.
local function is_same(a, b)
  if a._fresh and b._fresh then return true end
  for _, state in ipairs(a:states()) do
    if not rawequal(a[state.name], b[state.name]) then return false end
  end
  return deferred_sums.equal(a, b)
end

-- Copies the states of one metric to another.
local function take(to, from)
  if to._device ~= from._device then to:to(from._device) end
  for _, state in ipairs(from:states()) do to[state.name] = from[state.name] end
  deferred_sums.copy(to, from)
  to._fresh = false
end

--- Updates all metrics with a batch.
function MetricCollection:update(...)
  for _, group in ipairs(self._groups) do
    local first, same = group[1], {}
    for i = 2, #group do same[i] = is_same(first, group[i]) end
    first:update(...)
    for i = 2, #group do
      if same[i] then take(group[i], first) else group[i]:update(...) end
    end
  end
end

-- Values by name, and their metrics by name. `of` returns the value of an item, and whether it is a
-- table, whose keys are the names. If a key occurs twice, all are prefixed by the names of their
-- metrics.
local function by_name(list, of)
  local values, owners, tables, seen, twice = {}, {}, {}, {}, false
  for _, item in ipairs(list) do
    local value, is_table = of(item)
    if is_table then
      tables[#tables + 1] = { item, value }
      for key in pairs(value) do
        local name = item.prefix .. key .. item.postfix
        twice = twice or seen[name]
        seen[name] = true
      end
    else
      values[item.name], owners[item.name] = value, item.metric
    end
  end
  for _, entry in ipairs(tables) do
    local item = entry[1]
    for key, value in pairs(entry[2]) do
      local name = item.prefix .. (twice and item.own .. "_" or "") .. key .. item.postfix
      values[name], owners[name] = value, item.metric
    end
  end
  return values, owners
end

--- metrics(...) updates all and returns their values of this batch by name (on this rank).
function MetricCollection:__call(...)
  for _, group in ipairs(self._groups) do
    local first, same = group[1], {}
    for i = 2, #group do same[i] = is_same(first, group[i]) end
    first(...)
    for i = 2, #group do
      local other = group[i]
      if same[i] then
        take(other, first)
        other._batch = first:batch_states()
        other.batch_value = other:figure_of { other._batch }
      else
        other(...)
      end
    end
  end
  return (by_name(self._list, function(item)
    local value = item.metric.batch_value
    return value, type(value) == "table"
  end))
end

--- Returns the values by name; those of a metric that computes a table by its keys, prefixed by the
--- metric's name where a key occurs twice. Options are those of Metric's compute.
function MetricCollection:compute(options)
  local values
  values, self._owners = by_name(self._list, function(item)
    local several = table.pack(item.metric:compute(options))
    if several.n == 1 then return several[1], type(several[1]) == "table" end
    return { table.unpack(several, 1, several.n) }
  end)
  return values
end

--- Returns the metric of a value, by its name in the last result of compute; nil: none.
function MetricCollection:metric_of(name) return self._owners and self._owners[name] end

--- The metrics by name.
function MetricCollection:named()
  local metrics = {}
  for _, item in ipairs(self._list) do metrics[item.name] = item.metric end
  return metrics
end

--- The metrics that `log_dict` logs, by name.
function MetricCollection:named_metrics()
  return (by_name(self._list, function(item)
    local metric = item.metric
    if metric.named_metrics then return metric:named_metrics(), true end
    return metric
  end))
end

--- Draws the values by name as bars; with `values = {...}`, a list of what compute returned, as a
--- line each; options as of Metric:plot.
function MetricCollection:plot(options) return metric_plot(self, options) end

--- Resets all metrics.
function MetricCollection:reset()
  for _, item in ipairs(self._list) do item.metric:reset() end
end

--- Moves the states of all metrics to a device.
function MetricCollection:to(device)
  for _, item in ipairs(self._list) do item.metric:to(device) end
  return self
end

--- Returns the states of all metrics by name, for checkpoints.
function MetricCollection:state_dict()
  local saved = {}
  for _, item in ipairs(self._list) do saved[item.name] = item.metric:state_dict() end
  return saved
end

--- Restores the states.
function MetricCollection:load_state_dict(saved)
  schema.check(saved, {}, "MetricCollection")
  for _, item in ipairs(self._list) do
    if saved[item.name] == nil then
      errors.blame("load_state_dict: the state of MetricCollection lacks '%s'", item.name)
    end
    item.metric:load_state_dict(saved[item.name])
  end
end

--- Returns the merged states of several parts.
function MetricCollection:joined(parts, who, ranks)
  local saved = {}
  for _, item in ipairs(self._list) do
    local states = {}
    for i, part in ipairs(parts) do states[i] = part[item.name] end
    saved[item.name] = item.metric:joined(states, who, ranks)
  end
  return saved
end

--- Merges the states of another collection of the same metrics into this one.
function MetricCollection:merge(other)
  local others = class.is_a(other, MetricCollection) and other:named() or {}
  for _, item in ipairs(self._list) do
    if not others[item.name] then
      errors.blame("merge: a MetricCollection with '%s' is needed: got %s", item.name,
        errors.show(other))
    end
    item.metric:merge(others[item.name])
  end
end

return MetricCollection
