--- stdlib/apps/sweep/init.lua: `ltrain sweep SCRIPT --lr 1e-4,1e-3 --metric val_loss`: trains a
--- script with several values of its options, and says which were best.
--
-- A sweep is a folder: sweep.json, sweep.csv, and the folder of a run for each trial. Whatever ends
-- it, the same command continues where it stood.
local background_process = require "ltrain.apps.dashboard.background_process"
local better_mode = require "ltrain.runs.better_mode"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local is_better = require "ltrain.core.is_better"
local protected_call = require "ltrain.cli.protected_call"
local refuse = require "ltrain.cli.refuse"
local rehearsal = require "ltrain.apps.sweep.rehearsal"
local runs = require "ltrain.runs"
local search_space = require "ltrain.apps.sweep.search_space"
local secrets = require "ltrain.core.secrets"
local sweep_table = require "ltrain.apps.sweep.sweep_files"
local sweep_trials = require "ltrain.apps.sweep.trials"
local tree = require "ltrain.core.tree"

local sweep = {}

local USAGE <const>, FAILED <const> = 2, 1
local LOCK_SECONDS <const> = 0.5
local TRIALS <const> = 10 -- of a random sweep, by default

-- What was asked for, as a table; nil, what is wrong.
local function read(parsed)
  local o = parsed.options
  if not parsed.script then return nil, "which script?" end
  if not o.metric then return nil, "--metric is needed: which metric is to be best?" end
  local of, message = search_space.read(parsed.flags)
  if not of then return nil, message end
  if #of.names == 0 then
    return nil, "nothing to try: give some option several values, --lr 1e-4,1e-3 or --width 64..512"
  end
  local method = o.method or search_space.is_finite(of) and not o.trials and "grid" or "random"
  if method == "grid" and not search_space.is_finite(of) then
    return nil, "a grid has no ranges: give values, or --method random"
  elseif method == "halving" and not math.tointeger(tonumber(of.fixed.max_epochs)) then
    return nil, "--method halving needs --max_epochs: the epochs of the trials that come to the end"
  end
  return { script = parsed.script, metric = o.metric, mode = o.mode or better_mode(o.metric),
    method = method, space = of, seed = o.sweep_seed or 0, jobs = o.jobs or 1, eta = o.eta or 3,
    rehearse = o.rehearse ~= false, count = o.trials,
    retry = o.retry_failed, control = o.dashboard_control,
    dir = o.dir or "ltrain_sweeps/" .. parsed.script:match "([^/]+)$":gsub("%.lua$", "") }
end

local function trials_of(asked)
  local list = asked.method ~= "random" and search_space.is_finite(asked.space) and not asked.count
    and search_space.grid(asked.space)
  if not list then
    list = {}
    for i = 1, asked.count or TRIALS do list[i] = search_space.draw(asked.space, asked.seed, i) end
  elseif asked.count then
    list = table.move(list, 1, math.min(asked.count, #list), 1, {})
  end
  local trials = {}
  for i, values in ipairs(list) do
    local folder = ("trial_%04d"):format(i)
    trials[i] = { trial = i, values = values, folder = folder, path = asked.dir .. "/" .. folder }
  end
  return trials
end

local function values_text(trial)
  local parts = {}
  for name, value in tree.pairs(trial.values) do parts[#parts + 1] = name .. "=" .. value end
  return errors.printable(table.concat(parts, " "))
end

local function trial_text(asked, trial)
  if trial.status == "failed" then
    return ("failed: %s"):format(errors.printable(trial.error:match "^[^\n]*"))
  elseif trial.value then
    return ("%s: %s = %.6g at step %d (%.1f s)"):format(trial.status, asked.metric, trial.value,
      trial.step, trial.seconds or 0)
  end
  return trial.status
end

-- Writes the table and, of what has ended, a line.
local function reporter(asked, trials, host)
  return function(trial)
    local ok, message = sweep_table.write(asked.dir, asked.metric, asked.space.names, trials)
    if not ok then errors.blame("sweep: %s", message) end
    if trial and trial.status ~= "running" then
      host.write(("trial %d of %d: %s: %s\n"):format(trial.trial, #trials, values_text(trial),
        trial_text(asked, trial)))
    end
  end
end

-- The best first; those without a value last.
local function ranked(asked, trials)
  local list = {}
  for _, trial in ipairs(trials) do
    if trial.value and trial.status ~= "failed" then list[#list + 1] = trial end
  end
  table.sort(list, function(a, b)
    if a.value ~= b.value then return is_better(asked.mode, a.value, b.value) end
    return a.trial < b.trial
  end)
  return list
end

-- Those that are still to be run.
local function unfinished(asked, trials)
  local list = {}
  for _, trial in ipairs(trials) do
    local again = trial.status == "failed" and asked.retry
    if again or trial.status == "waiting" or trial.status == "stopped" then
      list[#list + 1] = trial
    end
  end
  return list
end

-- Epochs of each round of successive halving, the last that of max_epochs.
local function rounds_of(asked, count)
  local most, list = math.tointeger(tonumber(asked.space.fixed.max_epochs)), {}
  local epochs, left = most, count
  while epochs >= 1 do
    table.insert(list, 1, epochs)
    left = left // asked.eta
    if left < 1 or epochs // asked.eta < 1 then break end
    epochs = epochs // asked.eta
  end
  return list
end

-- Successive halving: all trials get few epochs, the best of them more, from their checkpoints.
local function halve(asked, trials, report)
  local alive = trials
  local rounds = rounds_of(asked, #trials)
  for k, epochs in ipairs(rounds) do
    local due = {}
    for _, trial in ipairs(alive) do
      local again = trial.status == "failed" and asked.retry
      local short = trial.status ~= "failed" and (trial.epochs or 0) < epochs
      if again or short or trial.status == "stopped" then due[#due + 1] = trial end
    end
    sweep_trials.run(asked, due, epochs, report)
    if asked.wrong then return end
    local list = ranked(asked, alive)
    alive = table.move(list, 1, k < #rounds and math.max(1, #list // asked.eta) or #list, 1, {})
  end
end

local function print_best(asked, trials, host)
  local list, failed = ranked(asked, trials), 0
  for _, trial in ipairs(trials) do
    if trial.status == "failed" then failed = failed + 1 end
  end
  if failed > 0 then host.write(("%d of %d trials failed\n"):format(failed, #trials)) end
  if #list == 0 then return FAILED end
  host.write(("best: trial %d: %s = %.6g: %s\n%s\n"):format(list[1].trial, asked.metric,
    list[1].value, values_text(list[1]), list[1].path))
  return 0
end

-- What the folder of a sweep says that it is.
local function identity(asked)
  local of, ranges = asked.space, {}
  for name, range in next, of.ranges do ranges[name] = { range[1], range[2] } end
  return { script = asked.script, metric = asked.metric, mode = asked.mode, method = asked.method,
    seed = asked.seed, values = of.values, ranges = ranges, fixed = secrets.values(of.fixed),
    eta = asked.method == "halving" and asked.eta or nil, trials = asked.count }
end

local function session(asked, trials, report)
  local is_new = true
  for _, trial in ipairs(trials) do
    sweep_trials.look(asked, trial)
    is_new = is_new and trial.status == "waiting"
  end
  asked.wrong = is_new and asked.rehearse and rehearsal.wrong(asked, trials[1]) or nil
  if asked.wrong then return end
  report()
  if asked.method == "halving" then
    halve(asked, trials, report)
  else
    sweep_trials.run(asked, unfinished(asked, trials), nil, report)
  end
end

-- What an interrupt, or an error, leaves: the table as the trials stand now.
local function leave(word, asked, trials, report, failure, host)
  for _, trial in ipairs(trials) do sweep_trials.look(asked, trial) end
  pcall(report)
  if not failure.stopped then return protected_call.report(host, failure) end
  return refuse(host, word, "interrupted: the same command continues it", host.signal())
end

-- A sweep whose command was wrong and that has run nothing leaves its folder to a better one.
local function forget(asked, trials)
  for _, trial in ipairs(trials) do
    if runs.is_run(trial.path) then return end
  end
  c.io.remove(asked.dir .. "/sweep.json")
  c.io.remove(asked.dir .. "/sweep.csv")
end

-- The lock of a sweep's folder, as process.lock; one that was killed holds it a moment longer.
local function take_lock(path)
  local process <const>, deadline = c.runtime.process, c.runtime.clock() + LOCK_SECONDS
  while true do
    local lock, why = process.lock(path)
    if lock ~= false or c.runtime.clock() > deadline then return lock, why end
    process.wait_any({}, LOCK_SECONDS / 10)
  end
end

--- The word's main: returns the exit status.
function sweep.main(word, parsed, host)
  local asked, message = read(parsed)
  if not asked then return refuse(host, word, message, USAGE) end
  if c.io.kind(asked.script) ~= "file" then
    return refuse(host, word, ("%s: there is no such script"):format(asked.script), USAGE)
  end
  local ok
  ok, message = c.io.make_folder(asked.dir)
  if not ok then return refuse(host, word, message) end
  local lock <close>, why = take_lock(asked.dir .. "/lock")
  if not lock then
    return refuse(host, word, why or ("%s: another sweep is running there"):format(asked.dir))
  end
  ok, message = sweep_table.open(asked.dir, identity(asked))
  if not ok then return refuse(host, word, message, USAGE) end
  local trials = trials_of(asked)
  local report = reporter(asked, trials, host)
  if parsed.options.dashboard then background_process.start(asked.dir, parsed.options) end
  local done, failure = protected_call.call(host, session, asked, trials, report)
  background_process.finish(not done)
  if not done then return leave(word, asked, trials, report, failure, host) end
  if asked.wrong then
    forget(asked, trials)
    return refuse(host, word, asked.wrong, USAGE)
  end
  return print_best(asked, trials, host)
end

return sweep
