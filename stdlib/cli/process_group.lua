--- stdlib/cli/process_group.lua: joins the process group of the launcher that started this process,
--- or starts mpirun for the script.
--
-- Joining comes first, because MPI wants to be there before anything else is; and what is wrong
-- with a launch is reported before the script has run for an hour.
local c = require "ltrain.c"
local environments = require "ltrain.clusters.environments"
local error_file = require "ltrain.cli.error_file"
local join = require "ltrain.clusters.join"
local refuse = require "ltrain.cli.refuse"
local requeue = require "ltrain.cli.requeue"

local process_group = {}

local USAGE <const> = 2

-- The value of a Trainer's option on the command line; nil when it is not there.
local function option(parsed, name)
  local override = parsed.overrides[name]
  return override and override.value
end

local function refuse_launcher_options(word, parsed, host)
  for _, name in ipairs { "hosts", "launcher_args" } do
    if parsed.options[name] then
      return refuse(host, word, ("--%s is for --launcher mpi"):format(name), USAGE)
    end
  end
end

--- Joins the world of this launch, if there is one; returns nil when the script may run, else an
--- exit status: the reason is printed, by rank 0 alone if it is the same on all ranks.
function process_group.join(host, devices, num_nodes)
  local environment = environments.current()
  local joined, message, own = join(environment, { devices = devices, num_nodes = num_nodes,
    owns_process = true })
  if joined == nil then
    local says = own and environment.comm == "ucx" or environment:global_rank() == 0
    if says then host.complain(("ltrain: %s\n"):format(message)) end
    error_file.write { text = message, rank = environment:global_rank(), status = USAGE }
    return USAGE
  end
  -- Of mpirun's signals only the users' own reach ranks at once: our launcher sends this one.
  if joined then host.stop_by "USR2" end
  -- mpirun hands USR1 on, SLURM sends it before a job's end: in neither case is it a kill.
  if joined or environment.stop_status or environment:variable "SLURM_JOB_ID" then
    requeue.arm(environment, host)
  end
end

--- After the script: what is due when all else is done. Returns the exit status.
function process_group.leave(status)
  requeue.finish(status)
  return c.dist.exit(status)
end

--- Before the script of a word: nil, or the exit status of what was done instead of it.
function process_group.enter(word, parsed, host)
  if parsed.options.launcher then
    return require "ltrain.cli.launch_mpi".main(word, parsed, host)
  end
  return refuse_launcher_options(word, parsed, host)
    or process_group.join(host, option(parsed, "devices"), option(parsed, "num_nodes"))
end

return process_group
