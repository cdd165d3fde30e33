--- stdlib/apps/sweep/rehearsal.lua: one batch of the first trial, before any trial is trained: an
--- option that nobody knows and a metric that is never logged are found in seconds.
--
-- The trial runs with --fast_dev_run, which writes nothing.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local rehearsed_metrics = require "ltrain.apps.sweep.rehearsed_metrics"
local sweep_trials = require "ltrain.apps.sweep.trials"

local rehearsal = {}

local USAGE <const> = 2 -- exit status

local function metrics_of(path)
  local list = {}
  for name in (c.io.kind(path) and c.io.read_file(path) or ""):gmatch "[^\n]+" do
    list[#list + 1] = name
  end
  table.sort(list)
  return list
end

local function wrong_metric(wanted, names)
  for _, name in ipairs(names) do
    if name == wanted then return nil end
  end
  return ("--metric: %s was not logged%s; there is: %s: --rehearse false skips this check"):format(
    errors.show(wanted), errors.did_you_mean(wanted, names), table.concat(names, ", "))
end

--- What is wrong with the command of a sweep; nil: nothing that one batch shows. A trial that fails
--- is the trials' affair.
function rehearsal.wrong(sweep, trial)
  local metrics, log = sweep.dir .. "/rehearsal.metrics", sweep.dir .. "/rehearsal.log"
  local function clear()
    c.io.remove(metrics)
    c.io.remove(log)
  end
  clear()
  local _ <close> = setmetatable({}, { __close = clear })
  local status = sweep_trials.rehearse(sweep, trial, log,
    ("%s=%s"):format(rehearsed_metrics.VARIABLE, metrics))
  if status == USAGE then return "a trial was refused: " .. sweep_trials.last_words(log) end
  local names = metrics_of(metrics)
  return status == 0 and #names > 0 and wrong_metric(sweep.metric, names) or nil
end

return rehearsal
