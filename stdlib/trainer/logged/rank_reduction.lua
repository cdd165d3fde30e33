--- stdlib/trainer/logged/rank_reduction.lua: reduces logged values over all ranks.
--
-- At the end of a pass every rank sends what it has gathered for each key, sums and counts and the
-- states of metrics, in one message. They are merged in the order of ranks, so that all have the
-- same exact values. A key that a rank did not log counts there as nothing; a key that ranks log in
-- different ways is an error, the same on all of them.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local data_ranks = require "ltrain.dist.data_ranks"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local gather_values = require "ltrain.dist.gather_values"
local hooks = require "ltrain.core.hooks"
local reductions = require "ltrain.core.reductions"
local to_numbers = require "ltrain.core.to_numbers"

local rank_reduction = {}

-- Fields of an item that other ranks need, besides its values.
local FIELDS <const> = {
  "hook", "key", "loader", "on_step", "on_epoch", "name", "step_name", "epoch_name", "prog_bar",
  "logger", "reduce", "sync_dist", "rank_zero_only",
}

-- What ranks must agree on: the field, and what it is called.
local AGREED <const> = {
  { "kind", "what is logged" }, { "reduce", "reduce_fx" }, { "on_step", "on_step" },
  { "on_epoch", "on_epoch" }, { "prog_bar", "prog_bar" }, { "logger", "logger" },
  { "sync_dist", "sync_dist" }, { "rank_zero_only", "rank_zero_only" },
}

--- The Lua number that a logged value stands for.
function rank_reduction.number(value)
  if type(value) == "userdata" then value = value:item() end
  if value == true then return 1 end
  if value == false then return 0 end
  return value
end

--- The same of what a metric has computed for `item`, which may be wrong.
function rank_reduction.value(item, value)
  local kind = type(value)
  if kind == "number" or kind == "boolean" or c.is_tensor(value) and value:numel() == 1 then
    return rank_reduction.number(value)
  end
  errors.blame("log: '%s' needs a metric that computes one number: it computed %s", item.key,
    errors.show(value))
end

--- Total and step value of each item: tables by item, all in one copy.
function rank_reduction.values_of(order)
  local values, totals, steps = {}, {}, {}
  for i, item in ipairs(order) do values[2 * i], values[2 * i + 1] = item.total, item.step_value end
  values = to_numbers(values)
  for i, item in ipairs(order) do totals[item], steps[item] = values[2 * i], values[2 * i + 1] end
  return totals, steps
end

--- An item, whose total is this number, as plain data. `serial`: the step of its last value.
function rank_reduction.describe(item, total)
  local packed = { total = total, count = item.count, serial = item.serial }
  for _, field in ipairs(FIELDS) do packed[field] = item[field] end
  return packed
end

-- Packing.

-- What the other ranks receive of an item: all of it, or (`step_only`) what belongs to the running
-- step. `total` and `last` are its total and step value as numbers.
local function pack(item, total, last, step_only)
  local packed, metric = rank_reduction.describe(item, total), item.metric
  packed.kind = metric and "a metric " .. class.of(metric).__name or "a number"
  if step_only then
    packed.total, packed.count = nil, nil
  elseif metric and item.on_epoch then
    packed.states = metric:state_dict()
  end
  if item.on_step and item.step_value ~= nil then
    packed.last, packed.weight = last, item.step_weight
    if metric and item.sync_dist then
      packed.batches = item.slices or { metric:batch_states() or metric:state_dict() }
    end
  end
  return packed
end

local function pack_step(res)
  local packed, now = {}, {}
  for _, item in ipairs(res.order) do
    if item.on_step and item.serial == res.serial then now[#now + 1] = item end
  end
  local _, steps = rank_reduction.values_of(now)
  for i, item in ipairs(now) do packed[i] = pack(item, nil, steps[item], true) end
  return packed
end

-- Merging.

local function id_of(item)
  return ("%d\0%s\0%s"):format(item.loader, item.hook, item.key)
end

local function show(value)
  return value == nil and "not given" or tostring(value)
end

local function check_agreed(item, packed, rank)
  for _, row in ipairs(AGREED) do
    local field, called = row[1], row[2]
    if item[field] ~= packed[field] then
      errors.blame("log: ranks log '%s' in %s in different ways: %s: %s on rank %d, %s on rank %d",
        item.key, item.hook, called, show(item[field]), item.ranks[1], show(packed[field]), rank)
    end
  end
end

-- A value that is not a number is so in every sum: which ranks have given one.
local function note_nan(item, value, rank)
  local list = item.nan_ranks
  if value == value or list[#list] == rank then return end
  list[#list + 1] = rank
end

local function add(item, field, how, value)
  if value == nil then return end
  item[field] = item[field] == nil and value or reductions[how](item[field], value)
end

-- Makes `serial` the step of the item's value, without what older ones gave.
local function begin_step(item, serial)
  item.step_value, item.step_total, item.step_count = nil, nil, nil
  item.batches, item.batch_ranks, item.serial = {}, {}, serial
end

-- The value of a step: with sync_dist of the samples of all ranks, else that of the first rank. A
-- rank that had no sample in the last step, or did not log there, has an older value.
local function merge_step(item, packed, rank)
  if packed.last == nil or packed.serial < item.serial then return end
  if packed.serial > item.serial then begin_step(item, packed.serial) end
  if item.sync_dist then note_nan(item, packed.last, rank) end
  if not item.sync_dist or item.rank_zero_only or not (packed.batches or packed.weight) then
    if item.step_value == nil then item.step_value = packed.last end
  elseif packed.batches then
    for _, states in ipairs(packed.batches) do
      table.insert(item.batches, states)
      table.insert(item.batch_ranks, rank)
    end
  elseif item.reduce ~= "mean" then
    add(item, "step_value", item.reduce, packed.last)
  elseif packed.weight ~= 0 then
    add(item, "step_total", "sum", packed.last * packed.weight)
    add(item, "step_count", "sum", packed.weight)
    item.step_value = item.step_total / item.step_count
  end
end

local function merge(item, packed, rank)
  table.insert(item.ranks, rank)
  note_nan(item, packed.total, rank)
  add(item, "total", item.reduce == "mean" and "sum" or item.reduce, packed.total)
  add(item, "count", "sum", packed.count)
  if packed.states then table.insert(item.states, packed.states) end
  merge_step(item, packed, rank)
end

local function new_item(packed, metric)
  local item = {
    metric = metric, kind = packed.kind, ranks = {}, states = {}, batches = {}, batch_ranks = {},
    nan_ranks = {}, serial = packed.serial, source = packed.source,
  }
  for _, field in ipairs(FIELDS) do item[field] = packed[field] end
  return item
end

-- Items out of the lists that the ranks sent, in the order in which rank 0 (then 1, ...)
-- logged them first. `metrics`: this rank's, by id.
local function merge_all(of_ranks, metrics)
  local list, by_id = {}, {}
  for i, packed in ipairs(data_ranks.union(of_ranks, id_of)) do
    for _, one in ipairs(packed) do
      local id = id_of(one)
      local item = by_id[id]
      if not item then
        item = new_item(one, metrics[id])
        by_id[id], list[#list + 1] = item, item
      end
      check_agreed(item, one, i - 1)
      merge(item, one, i - 1)
    end
  end
  return list
end

local function metrics_of(order)
  local metrics = {}
  for _, item in ipairs(order) do metrics[id_of(item)] = item.metric end
  return metrics
end

-- Values.

-- What is still to be computed by metrics: { item, field, parts, their ranks }.
local function add_jobs(list, jobs)
  for _, item in ipairs(list) do
    if item.total ~= nil then
      item.value = item.reduce == "mean" and item.total / item.count or item.total
    end
    if #item.states > 0 then jobs[#jobs + 1] = { item, "value", item.states, item.ranks } end
    if #item.batches > 0 then
      jobs[#jobs + 1] = { item, "step_value", item.batches, item.batch_ranks }
    end
  end
  return jobs
end

-- Each rank computes for itself; a metric that some do not have is computed by the first of those
-- that do, and sent in one more message.
local function compute(jobs)
  local mine, partial = {}, false
  for i, job in ipairs(jobs) do
    local item, field = job[1], job[2]
    if item.metric then
      item[field] = rank_reduction.value(item,
        item.metric:figure_of(job[3], ("log: '%s'"):format(item.key), job[4]))
    end
    if #item.ranks < data_ranks.replicas() or data_ranks.is_shared() then
      partial = true
      if item.source == dist.rank() then mine[i] = item[field] end
    end
  end
  if not partial then return end
  local computed = dist.all_gather(mine)
  for i, job in ipairs(jobs) do
    local item, field = job[1], job[2]
    if not item.metric then item[field] = computed[item.source + 1][i] end
  end
end

-- Ranks that had batches in this pass and did not log the item; nil when there are none.
local function missing_ranks(item, ranks)
  if item.rank_zero_only or #item.ranks == #ranks then return nil end
  local has, missing = {}, nil
  for _, rank in ipairs(item.ranks) do has[rank] = true end
  local in_batches = hooks.by_name[item.hook].log ~= "epoch"
  for rank = 0, #ranks - 1 do
    if not has[rank] and (ranks[rank + 1].ran or not in_batches) then
      missing = missing or {}
      missing[#missing + 1] = rank
    end
  end
  return missing
end

-- Rows that waited for the end of the pass: those of one batch of all ranks are one.
local function merge_rows(ranks, metrics)
  local rows, by_place = {}, {}
  for rank, of_rank in ipairs(ranks) do
    for _, one in ipairs(of_rank.rows or {}) do
      local place = ("%d %d"):format(one.loader, one.batch)
      local row = by_place[place]
      if not row then
        row = { at = one.at, packed = {} }
        for i = 1, #ranks do row.packed[i] = {} end
        by_place[place], rows[#rows + 1] = row, row
      end
      row.packed[rank] = one.items
    end
  end
  for _, row in ipairs(rows) do row.items = merge_all(row.packed, metrics) end
  table.sort(rows, function(a, b) return a.at < b.at end)
  return rows
end

local function has_run(of_rank) return of_rank.ran end

-- What the loops use; every rank calls these.

--- What was logged in a pass, as all ranks together have it: items with `value` (of the epoch),
--- `step_value` (of the last step), `missing` (ranks that did not log it) and `nan_ranks` (whose
--- value is not a number). Then the rows that were kept: { at =, items = }.
function rank_reduction.pass(res)
  local packed, metrics = {}, metrics_of(res.order)
  local totals, steps = rank_reduction.values_of(res.order)
  for i, item in ipairs(res.order) do packed[i] = pack(item, totals[item], steps[item]) end
  local ranks = gather_values {
    items = packed, ran = res.serial > res.start, rows = res.rows,
  }
  res.rows = nil
  local lists = {}
  for i, of_rank in ipairs(ranks) do lists[i] = of_rank.items end
  local list = merge_all(lists, metrics)
  local rows = merge_rows(ranks, metrics)
  local jobs = add_jobs(list, {})
  for _, row in ipairs(rows) do add_jobs(row.items, jobs) end
  compute(jobs)
  local replicas = data_ranks.pick(ranks, has_run)
  for _, item in ipairs(list) do item.missing = missing_ranks(item, replicas) end
  return list, rows
end

--- What was logged in the running step, as items with `step_value` and `nan_ranks`.
function rank_reduction.step(res)
  local list = merge_all(gather_values(pack_step(res)), metrics_of(res.order))
  compute(add_jobs(list, {}))
  return list
end

--- What results.state_dict gave on each rank, as one such list.
function rank_reduction.saved(lists)
  for _, list in ipairs(lists) do
    for _, saved in ipairs(list) do
      saved.kind = saved.metric and "a metric" or "a number"
      saved.last, saved.weight = saved.step_value, saved.step_weight
    end
  end
  local list, by_id = merge_all(lists, {}), {}
  for i = #lists, 1, -1 do
    for _, saved in ipairs(lists[i]) do by_id[id_of(saved)] = saved end
  end
  for i, item in ipairs(list) do
    local saved = rank_reduction.describe(item, item.total)
    local first = by_id[id_of(item)]
    saved.given, saved.metric, saved.step_value = first.given, first.metric, item.step_value
    list[i] = saved
  end
  return list
end

--- Keeps the running step's values, those of batch `batch`, until the pass ends. `at`: the row's
--- place on the axis.
function rank_reduction.keep_row(res, batch, at)
  res.rows = res.rows or {}
  table.insert(res.rows, { loader = res.loader, batch = batch, at = at, items = pack_step(res) })
end

return rank_reduction
