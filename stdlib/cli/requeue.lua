--- stdlib/cli/requeue.lua: SIGUSR1: a fit saves at the end of its batch and ends; a job of SLURM
--- is queued again, ranks of `ltrain launch` are started again, and resume from there.
--
-- SLURM sends it some time before a job's end (`#SBATCH --signal=USR1@90`), mpirun hands it on. The
-- handler leaves a note; a callback of every Trainer looks at it after each batch and interrupts
-- its own rank, which passes it to the others with the next step, as any signal. `scontrol requeue`
-- comes last of all, because it ends the job. A file in the working folder records for the
-- restarted job which loop of the script resumes from which checkpoint. Ranks of `ltrain launch`
-- may be started again without a warning: there it is written at each checkpoint.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local console = require "ltrain.core.console"
local interrupt = require "ltrain.core.interrupt"
local overrides = require "ltrain.trainer.setup.overrides"
local version = require "ltrain.loggers.version"

local requeue = {}

local SIGNAL <const> = "USR1"
local SECONDS <const> = 30 -- for scontrol

local Watch = Callback:extend "SignalWatch"

Watch.all_ranks = true

-- { host =, number = of the signal, job = of SLURM or of `ltrain launch` or nil, environment =,
-- launched = whether it is the latter, stopped =, path =, step =, loop =, folders = of the
-- loggers }, or nil.
local armed

-- No collective: a rank without a sample in this step is not here.
local function look(self)
  if self.acted or not armed.host.noted(SIGNAL) then return end
  self.acted = true
  armed.host.interrupt(SIGNAL)
end

for _, name in ipairs { "train", "validation", "test", "predict" } do
  Watch["on_" .. name .. "_batch_end"] = look
end

--- The run ends: by the interrupt that `look` asked for, here or on another rank, if it did.
function Watch:on_exception(trainer, _, err)
  local agreed = trainer.running.ranks.agreed
  local asked = self.acted or armed.launched or agreed ~= nil and agreed.signal == armed.number
  if not asked or not interrupt.is(err) then return end
  armed.loop, armed.path = overrides.ran, trainer.running.interrupted_path
  armed.step, armed.folders = trainer.global_step, version.folders(trainer.loggers)
  armed.stopped = true
end

local function file_of(job)
  return ("ltrain_requeue_%s.json"):format((job:gsub("[^%w%._-]", "_")))
end

-- true, or nil and a message.
local function write(loop, path, step, folders, stopped)
  local saved = { loop = loop, path = path, step = step, folders = folders, stopped = stopped }
  return c.io.write_file(file_of(armed.job), c.io.json_encode(saved, { plain = true }) .. "\n")
end

--- The launcher's: the job will not be started again.
function requeue.forget(job)
  if c.io.kind(file_of(job)) then c.io.remove(file_of(job)) end
end

local function read(job)
  local text = c.io.kind(file_of(job)) and c.io.read_file(file_of(job))
  local saved = text and c.io.json_decode(text, { plain = true })
  return type(saved) == "table" and saved.path and saved or nil
end

-- After a restart: the loop that was stopped resumes from its file.
local function resume(environment, job)
  local restarts = environment:integer "SLURM_RESTART_COUNT" or 0
  local saved = restarts >= 1 and read(job)
  if not saved then return end
  overrides.resume = { loop = saved.loop, path = saved.path }
  if environment:global_rank() == 0 then
    console.say(("SLURM: job %s was restarted (SLURM_RESTART_COUNT=%d): resumes from %s"):format(
      job, restarts, saved.path))
  end
end

-- Of `ltrain launch`: after a restart of the ranks, or of all launchers after a signal to them.
-- Rank 0's file counts: the working folders of other hosts may be others.
local function resume_launched(environment, job)
  local saved = environment:global_rank() == 0 and read(job)
  local again = environment:incarnation() > 0 or saved and saved.stopped
  if not (saved and again and c.io.kind(saved.path)) then saved = false end
  saved = collectives.broadcast(saved)
  if not saved then return end
  overrides.resume = { loop = saved.loop, path = saved.path, step = saved.step,
    folders = saved.folders,
    note = ("launch: incarnation %d resumes from %%s"):format(environment:incarnation()) }
end

-- The job's name for scontrol: a task of an array is queued by itself. Nil outside of SLURM.
local function job_of(environment)
  local array, task = environment:variable "SLURM_ARRAY_JOB_ID",
    environment:variable "SLURM_ARRAY_TASK_ID"
  if array and task then return ("%s_%s"):format(array, task) end
  return environment:variable "SLURM_JOB_ID"
end

--- Begins to watch for the signal. `host`: what touches the process (stdlib/cli).
function requeue.arm(environment, host)
  local launched = environment.stop_status ~= nil
  local job = launched and environment:job() or job_of(environment)
  armed = { host = host, environment = environment, job = job, launched = launched,
    number = host.note_signal(SIGNAL) }
  overrides.callbacks[#overrides.callbacks + 1] = Watch()
  if launched then
    interrupt.statuses[armed.number] = environment.stop_status
    function overrides.saved(path, step, loggers)
      write(overrides.ran, path, step, version.folders(loggers))
    end
    resume_launched(environment, job)
  elseif job then
    resume(environment, job)
  end
end

-- Hands the job back to SLURM. Nil when it was, else why not.
local function hand_back(job)
  local ok, message = write(armed.loop, armed.path, armed.step)
  if not ok then return message end
  local status, text = c.runtime.process.capture({ "scontrol", "requeue", job }, SECONDS)
  if status == 0 then return nil end
  return status and ("scontrol requeue %s: %s"):format(job, text:gsub("%s+$", "")) or text
end

--- The last act, when all else is done. Rank 0 requeues the job if the signal ended the script, and
--- forgets the file of a job that has finished.
function requeue.finish(status)
  if not armed or not armed.job then return end
  -- SLURM ends the steps of a job that it queues again: ranks are ending.
  if armed.stopped then armed.host.note_signal "TERM" end
  if armed.environment:global_rank() ~= 0 then return end
  if status == 0 and not armed.stopped then return requeue.forget(armed.job) end
  if armed.launched then
    if armed.stopped and armed.path then
      write(armed.loop, armed.path, armed.step, armed.folders, true)
    end
    return
  end
  if not armed.stopped or armed.environment.auto_requeue == false then return end
  local wrong = hand_back(armed.job)
  console.say(wrong and ("SLURM: job %s is not queued again: %s"):format(armed.job, wrong)
    or ("SLURM: job %s is queued again%s"):format(armed.job,
      armed.path and ", to resume from " .. armed.path or ""))
end

return requeue
