--- stdlib/trainer/logged/metrics.lua: computes the metrics of a step or a pass from the logged
--- values.
--
-- On several ranks the metrics of a pass are reduced over all of them (rank_reduction.lua), and
-- every rank has the same. Step values are reduced where they are written: at log steps in
-- training; in evaluation, where ranks may have different numbers of batches, when the pass ends.
local data_ranks = require "ltrain.dist.data_ranks"
local errors = require "ltrain.core.errors"
local hooks = require "ltrain.core.hooks"
local rank_reduction = require "ltrain.trainer.logged.rank_reduction"
local results = require "ltrain.trainer.logged.results"
local to_numbers = require "ltrain.core.to_numbers"

local metrics = {}

local function own_step_values(res)
  local row
  for _, item in ipairs(res.order) do
    if item.on_step and item.logger and item.serial == res.serial then
      row = row or {}
      row[item.step_name] = item.step_value
    end
  end
  return row
end

local function own_step_row(res)
  local row = own_step_values(res)
  return row and to_numbers(row)
end

local function row_of(items)
  local row
  for _, item in ipairs(items) do
    if item.logger and item.step_value ~= nil then
      row = row or {}
      row[item.step_name] = item.step_value
    end
  end
  return row
end

-- Once a name in a loop, whatever the ranks.
local function report(state, item, text, ranks)
  local reported = state.loop.reported or {}
  state.loop.reported = reported
  if reported[item.name] then return end
  reported[item.name] = true
  state.trainer:say(text:format(item.name, errors.show_ranks(ranks)))
end

-- Conditional logging is legitimate; that it was conditional is said once.
local function report_missing(state, item)
  report(state, item, "log: '%s' was not logged on %s: it is ignored there", item.missing)
end

-- One rank's makes that of all ranks so: what a metric computes that only others have updated.
local function report_nan(state, item)
  local nan = item.nan_ranks
  if #nan == 0 or #nan == #item.ranks then return end
  report(state, item, "warning: log: '%s' is nan on %s alone, which makes it nan for all ranks; if "
    .. "a metric computed it that was not updated there, log the metric itself", nan)
end

--- What the training step that just ran has logged for the loggers, names and values, tensors among
--- them; nil when there is nothing. Of several ranks it is this one's.
function metrics.step_values(state) return own_step_values(state.loop.results) end

--- Names and numbers of the training step that just ran, for the loggers; nil when there are none.
--- All ranks call it.
function metrics.step_row(state)
  if not state.ranks.many then return own_step_row(state.loop.results) end
  local items = rank_reduction.step(state.loop.results)
  for _, item in ipairs(items) do
    report_nan(state, item)
    results.show_step(state, item, item.step_value)
  end
  return row_of(items)
end

--- The same of a batch of evaluation. With values that are to be merged it waits for the end of the
--- pass: metrics.publish gives it.
function metrics.eval_row(state)
  local res = state.loop.results
  if state.ranks.many then
    for _, item in ipairs(res.order) do
      local is_merged = item.sync_dist or data_ranks.is_shared()
      if item.on_step and is_merged and item.serial == res.serial then
        rank_reduction.keep_row(res, state.loop.batch_idx, state.progress.eval_rows)
        return nil
      end
    end
  end
  return own_step_row(res)
end

local function own_value(item, total)
  if item.metric then return rank_reduction.value(item, item.metric:compute()) end
  if total == nil then return nil end
  return item.reduce == "mean" and total / item.count or total
end

local function totals_of(order)
  local totals = {}
  for _, item in ipairs(order) do totals[item] = item.total end
  return to_numbers(totals)
end

local function add_epoch(out, item, value)
  out.callback[item.name], out.callback[item.epoch_name] = value, value
  out.epoch[item.epoch_name] = value
  if item.logger then out.log[item.epoch_name] = value end
  if item.prog_bar then out.bar[item.epoch_name] = value end
  local by_loader = hooks.by_name[item.hook].log == "eval"
  if by_loader then out.loaders[item.loader] = out.loaders[item.loader] or {} end
  local own = by_loader and out.loaders[item.loader] or out.shared
  own[item.epoch_name] = value
end

-- The last step's value is one for all ranks when a pass is over.
local function add_step(out, item, train)
  local value = item.step_value
  if train then out.callback[item.name], out.callback[item.step_name] = value, value end
  if item.prog_bar then out.bar[item.step_name] = value end
end

-- Metrics of the whole pass, as publish returns them.
local function pass_of(state)
  local res = state.loop.results
  local out = { callback = {}, epoch = {}, log = {}, bar = {}, loaders = {}, shared = {},
    rows = {} }
  if not state.ranks.many then
    local totals = totals_of(res.order)
    for _, item in ipairs(res.order) do
      local value = item.on_epoch and own_value(item, totals[item])
      if value then add_epoch(out, item, value) end
    end
    return out
  end
  local items, rows = rank_reduction.pass(res)
  for _, item in ipairs(items) do
    if item.missing then report_missing(state, item) end
    report_nan(state, item)
    if item.step_value ~= nil then add_step(out, item, res.train) end
    if item.value then add_epoch(out, item, item.value) end
  end
  for i, row in ipairs(rows) do out.rows[i] = { at = row.at, row = row_of(row.items) } end
  return out
end

--- Metrics of the whole pass, which the Trainer has from now on too: {callback =, epoch =, log =,
--- bar =, loaders = {[i] = {...}}, shared = {...}, rows = {...}}. `epoch` has all that was logged
--- with on_epoch, `loaders[i]` what belongs to eval loader i, `shared` what was logged outside
--- batches, `rows` what is still to be written of its batches: { at =, row = }. All ranks call it.
function metrics.publish(state)
  local found, trainer = pass_of(state), state.trainer
  for name, value in pairs(found.callback) do trainer.callback_metrics[name] = value end
  for name, value in pairs(found.log) do trainer._logged_metrics[name] = value end
  for name, value in pairs(found.bar) do trainer.progress_bar_metrics[name] = value end
  return found
end

--- The step of what is logged in the running hook: at the end of an epoch that of its last batch.
function metrics.step_of(state)
  local stepped = state.progress.stepped
  return state.hook == "on_train_epoch_end" and math.max(stepped - 1, 0) or stepped
end

--- Gives a row of metrics to the loggers and to trainer.logged_metrics.
function metrics.log(state, row, step)
  local trainer = state.trainer
  for name, value in pairs(row) do trainer._logged_metrics[name] = value end
  trainer:_send_row(row, step)
end

return metrics
