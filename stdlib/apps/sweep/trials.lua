--- stdlib/apps/sweep/trials.lua: runs the trials of a sweep, each a process with its own folder.
--
-- What a trial came to is read in its folder (stdlib/runs), so that it does not matter which call
-- of the sweep has run it.
local c = require "ltrain.c"
local runs = require "ltrain.runs"
local tree = require "ltrain.core.tree"

local sweep_trials = {}

local process <const> = c.runtime.process
local USAGE <const>, INTERRUPTED <const> = 2, 130 -- exit statuses
local ERROR <const> = "/error.txt" -- of a trial that has failed before it had a run.json
local LOG <const> = "/output.log" -- of a trial: what it prints
local LOOK_SECONDS <const> = 0.5
local END_SECONDS <const> = 30 -- for trials that are to save and end

--- The last words of a process in its log, without the first "ltrain: ".
function sweep_trials.last_words(path)
  local text = c.io.kind(path) and c.io.read_file(path) or ""
  local last
  for line in text:gmatch "[^\r\n]+" do
    if line:find "^ltrain: " or not last then last = line end
  end
  return last and last:gsub("^ltrain: ", "") or "it printed nothing"
end

-- The checkpoint that a trial resumes from: the newest in its folder; nil without any.
local function newest_checkpoint(folder)
  local newest, latest
  local checkpoints = folder .. "/checkpoints"
  local names = c.io.kind(checkpoints) == "folder" and c.io.list_folder(checkpoints) or {}
  for _, name in ipairs(names) do
    local path = checkpoints .. "/" .. name
    local when = name:find "%.ckpt$" and c.io.modified(path)
    if when and (not latest or when >= latest) then newest, latest = path, when end
  end
  return newest
end

--- Reads what a trial has come to into trial.status, value, step, epochs, seconds, error. The
--- status is "waiting", "finished", "failed", or "stopped" where it can be resumed.
function sweep_trials.look(sweep, trial)
  trial.status, trial.error = "waiting", nil
  if not runs.is_run(trial.path) then
    trial.error = c.io.kind(trial.path .. ERROR) and c.io.read_file(trial.path .. ERROR) or nil
    if trial.error then trial.status = "failed" end
    return
  end
  local run, message = runs.read(trial.path)
  if not run then
    trial.status, trial.error = "failed", message
    return
  end
  trial.value, trial.step = runs.best(run, sweep.metric, sweep.mode)
  trial.epochs, trial.seconds = run.info.epoch, run.seconds
  if run.status == "finished" and not trial.value then
    trial.status = "failed"
    trial.error = ("%s was not logged, or never finite; there is: %s"):format(sweep.metric,
      #run.names > 0 and table.concat(run.names, ", ") or "nothing")
  elseif run.status == "finished" or run.status == "failed" then
    trial.status, trial.error = run.status, run.error
  else
    trial.status = "stopped"
  end
end

-- The command of a trial.
local function command_of(sweep, trial, epochs)
  local argv = { process.executable(), "run", sweep.script, "--run_dir", trial.path }
  local flags = {}
  for name, text in next, sweep.space.fixed do flags[name] = text end
  for name, text in next, trial.values do flags[name] = text end
  if epochs then flags.max_epochs = tostring(epochs) end
  if sweep.control then flags.dashboard_control = "true" end
  flags.enable_progress_bar = flags.enable_progress_bar or "false"
  flags.threads = flags.threads or tostring(math.max(1, process.cores() // sweep.jobs))
  for name, text in tree.pairs(flags) do argv[#argv + 1] = ("--%s=%s"):format(name, text) end
  local checkpoint = newest_checkpoint(trial.path)
  if checkpoint then argv[#argv + 1] = "--ckpt_path=" .. checkpoint end
  return argv
end

-- For a shell: a command without input, whose output goes to a file.
local LOGGED <const> = 'exec "$@" </dev/null >>"$0" 2>&1'

-- Starts a trial; what it prints goes to output.log in its folder.
local function start(sweep, trial, epochs)
  local ok, message = c.io.make_folder(trial.path)
  if not ok then return nil, message end
  c.io.remove(trial.path .. ERROR)
  local argv = { "sh", "-c", LOGGED, trial.path .. LOG }
  local command = command_of(sweep, trial, epochs)
  return process.start(table.move(command, 1, #command, #argv + 1, argv))
end

-- A process has ended.
local function finish(sweep, trial, status)
  sweep_trials.look(sweep, trial)
  if status == 0 and trial.status ~= "waiting" then return end
  if status == INTERRUPTED and trial.status == "stopped" then return end -- by a dashboard, a signal
  if status == 0 then
    trial.status, trial.error = "failed", "it has trained nothing: the script started no fit"
    return
  end
  trial.status = "failed"
  trial.error = trial.error or sweep_trials.last_words(trial.path .. LOG)
  if status == USAGE then
    sweep.wrong = "a trial was refused: " .. trial.error
  elseif not runs.is_run(trial.path) then
    c.io.write_file(trial.path .. ERROR, trial.error)
  end
end

local function pids_of(running)
  local pids = {}
  for pid in next, running do pids[#pids + 1] = pid end
  table.sort(pids)
  return pids
end

-- Ends what still runs: it saves first, as by Ctrl-C.
local function end_all(running)
  for _, pid in ipairs(pids_of(running)) do process.signal(pid, "INT") end
  local deadline = c.runtime.clock() + END_SECONDS
  while next(running) and c.runtime.clock() < deadline do
    local pid = process.wait_any(pids_of(running), LOOK_SECONDS)
    if pid then running[pid] = nil end
  end
  for pid in next, running do process.signal(pid, "KILL") end
end

--- Runs a batch of a trial, which writes nothing but what it prints, to the file `log`; `variable`:
--- of its environment. Returns its exit status.
function sweep_trials.rehearse(sweep, trial, log, variable)
  local argv = { "sh", "-c", LOGGED, log }
  for _, word in ipairs(command_of(sweep, trial)) do argv[#argv + 1] = word end
  argv[#argv + 1] = "--fast_dev_run=true"
  local pid = process.start(argv, { variable })
  local running = { [pid or false] = pid and trial }
  local _ <close> = setmetatable({}, { __close = function() end_all(running) end })
  while pid and running[pid] do
    local ended, status = process.wait_any({ pid }, LOOK_SECONDS)
    if ended then
      running[pid] = nil
      return status
    end
  end
end

--- Runs trials, up to sweep.jobs at a time, each for `epochs` epochs in all (nil: as the script
--- says). report(trial) is called when one has ended. An interrupt ends them all.
function sweep_trials.run(sweep, trials, epochs, report)
  local running, next_one = {}, 1
  local _ <close> = setmetatable({}, { __close = function() end_all(running) end })
  while true do
    while next_one <= #trials and #pids_of(running) < sweep.jobs and not sweep.wrong do
      local trial = trials[next_one]
      next_one = next_one + 1
      local pid, message = start(sweep, trial, epochs)
      if pid then
        running[pid], trial.status = trial, "running"
      else
        trial.status, trial.error = "failed", message
      end
      report(trial)
    end
    if next(running) == nil then return end
    local pid, status = process.wait_any(pids_of(running), LOOK_SECONDS)
    if pid then
      local trial = running[pid]
      running[pid] = nil
      finish(sweep, trial, status)
      report(trial)
    end
  end
end

return sweep_trials
