--- stdlib/cli/launch_mpi.lua: `ltrain run --launcher mpi`: runs the same command line under mpirun.
--
-- What can be wrong is found before mpirun starts: it would take seconds and answer in a page of
-- its own.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local environments = require "ltrain.clusters.environments"
local mpirun = require "ltrain.clusters.mpirun"
local rank_command = require "ltrain.cli.rank_command"
local refuse = require "ltrain.cli.refuse"

local launch_mpi = {}

local USAGE <const> = 2
local DIAL_SECONDS <const> = 0.8
local OWN <const> = { launcher = true, launcher_args = true, hosts = true }

-- The value that the command line gives an option of the Trainer, as a count.
local function count_of(parsed, name)
  local override = parsed.overrides[name]
  return override and math.tointeger(tonumber(override.value or ""))
end

-- What `--hosts`, `--devices` and `--num_nodes` mean together: {ranks =, hosts =, nodes =}; nil and
-- what is wrong.
local function plan_of(parsed)
  local devices, nodes = count_of(parsed, "devices"), count_of(parsed, "num_nodes")
  local hosts, message
  if parsed.options.hosts then
    hosts, message = mpirun.read_hosts(parsed.options.hosts, devices)
    if not hosts then return nil, "--hosts: " .. message end
    if nodes and nodes ~= #hosts then
      return nil, ("--hosts names %d machines, --num_nodes is %d"):format(#hosts, nodes)
    end
  end
  if not hosts then
    if not devices then
      return nil, "--launcher mpi: the number of ranks is missing: give --devices N"
    end
    nodes = nodes or 1
    return { ranks = devices * nodes, nodes = nodes, hosts = nodes > 1 and {} or nil }
  end
  local ranks = 0
  for _, host in ipairs(hosts) do
    if not host.slots then
      return nil, ("--hosts: the number of ranks on %s is missing: give --devices N, or "
        .. "%s:N"):format(host.name, host.name)
    elseif devices and host.slots ~= devices then
      return nil, ("--hosts: %s has %d ranks, --devices is %d"):format(host.name, host.slots,
        devices)
    end
    ranks = ranks + host.slots
  end
  return { ranks = ranks, nodes = #hosts, hosts = hosts }
end

-- What is wrong with the plan on these machines, or nil.
local function check(plan, more)
  local environment, evidence = environments.current()
  if environment.name ~= "Local" and environment:world_size() > 1 then
    return ("--launcher mpi: this is already a rank of %s (%s)"):format(environment.name, evidence)
  end
  local missing = mpirun.missing()
  if missing then return "--launcher mpi: " .. missing end
  if not plan.hosts then return nil end
  if #plan.hosts > 0 then
    return mpirun.uses_ssh(more) and mpirun.unreachable(plan.hosts, DIAL_SECONDS) or nil
  end
  local placed = table.concat(more, " "):find "hostfile" or c.runtime.getenv "SLURM_JOB_ID"
  return not placed and ("--num_nodes is %d: the machines are missing: give --hosts a,b"):format(
    plan.nodes)
    or nil
end

-- On many machines the number of them is passed to the ranks: the Trainer's default is one.
local function program_of(word, parsed, plan)
  local is_told <const> = plan.nodes == 1 or parsed.overrides.num_nodes
  return rank_command(parsed, word.name, OWN,
    not is_told and { "--num_nodes", tostring(plan.nodes) } or nil)
end

--- Runs the word on ranks of mpirun; returns the exit status.
function launch_mpi.main(word, parsed, host)
  local more, wrong = mpirun.cut(parsed.options.launcher_args or "")
  local plan
  if more then plan, wrong = plan_of(parsed) end
  if plan then wrong = check(plan, more) end
  if wrong then return refuse(host, word, wrong, USAGE) end
  local cores = c.runtime.process.cores()
  if not plan.hosts and mpirun.crowds(plan.ranks) then
    console.say(("%d ranks on %d cores: oversubscribed"):format(plan.ranks, cores))
  end
  local command, environment = mpirun.command(plan.ranks, program_of(word, parsed, plan),
    { hosts = plan.hosts, more = more })
  local status, message = c.runtime.process.supervise(command, environment, true)
  return status or refuse(host, word, message)
end

return launch_mpi
