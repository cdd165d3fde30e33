--- stdlib/clusters/mpirun.lua: the command line of Open MPI's mpirun.
local c = require "ltrain.c"
local node_list = require "ltrain.clusters.node_list"

local mpirun = {}

local process = c.runtime.process

-- After the first failure mpirun would kill the others within 2 s; ranks of ours need up to 30 s to
-- save, and end by themselves long before when there is nothing to save. Whoever supervises it
-- wakes it then (lua/bind/system/supervise.c).
local KILL_SECONDS <const> = 40

-- Variables of ours that ranks on other machines need; mpirun hands on none by itself.
local HANDED_ON <const> = { "LD_LIBRARY_PATH", "LTRAIN_BACKENDS", "LTRAIN_STDLIB", "LT_SEED",
  "LT_TIMEOUT", "LUA_CPATH", "LUA_CPATH_5_4", "LUA_PATH", "LUA_PATH_5_4", "OMP_NUM_THREADS" }

--- Whether `ranks` on this machine are more than the cores that this process may run on.
function mpirun.crowds(ranks)
  return ranks > process.cores()
end

-- Where the ranks run: words for mpirun.
local function places(ranks, hosts)
  if not hosts then
    if mpirun.crowds(ranks) then return { "--oversubscribe" } end
    return { "-H", ("localhost:%d"):format(ranks) } -- it counts cores, we what we may run on
  elseif #hosts == 0 then
    return {}
  end
  local list = {}
  for i, host in ipairs(hosts) do list[i] = ("%s:%d"):format(host.name, host.slots) end
  local argv = { "-H", table.concat(list, ","), "--map-by", "slot" }
  for _, name in ipairs(HANDED_ON) do
    if c.runtime.getenv(name) then table.move({ "-x", name }, 1, 2, #argv + 1, argv) end
  end
  return argv
end

--- The words of a command that runs `program` (a list of words) as `ranks` ranks, and what its
--- environment needs beside ours. Options:
--- hosts: a list of {name =, slots =}, nil for this machine, empty where mpirun knows by itself
--- more: words for mpirun
--- hasty: ranks have nothing to save
function mpirun.command(ranks, program, options)
  local o = options or {}
  local argv = { "mpirun", "-q", "-n", tostring(ranks), "--bind-to", "none",
    "--mca", "odls_base_sigkill_timeout", tostring(o.hasty and 1 or KILL_SECONDS) }
  for _, list in ipairs { places(ranks, o.hosts), o.more or {}, program } do
    table.move(list, 1, #list, #argv + 1, argv)
  end
  local environment = {}
  if process.is_root() then
    environment = { "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1" }
  end
  return argv, environment
end

--- Why mpirun cannot run ranks of this build, as a sentence; nil when it can.
function mpirun.missing()
  if not process.find "mpirun" then
    return "mpirun is not installed (Debian: apt-get install openmpi-bin)"
  end
  for _, part in ipairs(c.runtime.parts()) do
    if part.name == "mpi" and not part.present then return "mpi: " .. part.text end
  end
end

-- What ssh would connect to for a name: {host, port}; nil when it goes by another way.
local function ssh_target(name)
  local status, text = process.capture({ "ssh", "-G", name }, 0.5)
  if status ~= 0 then return { name, 22 } end
  text = "\n" .. text
  if text:find "\nproxyjump " or text:find "\nproxycommand " then return nil end
  return { text:match "\nhostname (%S+)" or name, tonumber(text:match "\nport (%d+)") or 22 }
end

--- Asks all hosts at once whether mpirun's ssh would reach them; nil when it would, else a sentence
--- with each that it would not.
function mpirun.unreachable(hosts, seconds)
  if not process.find "ssh" then
    return "mpirun starts ranks on other machines by ssh, and ssh is not installed (or give it "
      .. "another "
      .. "agent: --launcher_args \"--mca plm_rsh_agent PROGRAM\")"
  end
  local asked, targets = {}, {}
  for _, host in ipairs(hosts) do
    local target = ssh_target(host.name)
    if target then
      asked[#asked + 1] = host.name
      targets[#targets + 1] = target
    end
  end
  local answers, message = process.probe(targets, seconds)
  if not answers then return message end
  local wrong = {}
  for i, answer in ipairs(answers) do
    if answer ~= "" and answer ~= "=" then
      wrong[#wrong + 1] = ("%s: %s"):format(asked[i], answer)
    end
  end
  if #wrong == 0 then return nil end
  return ("%d of %d hosts cannot be reached by ssh: %s"):format(#wrong, #hosts,
    table.concat(wrong, "; "))
end

--- Whether ranks get to other machines by ssh: not when another agent is named (in `more`, or by
--- Open MPI's variables), nor within an allocation of SLURM.
function mpirun.uses_ssh(more)
  for _, word in ipairs(more) do
    if word:find "rsh_agent$" then return false end
  end
  for _, name in ipairs { "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_rsh_agent", "SLURM_JOB_ID" } do
    if c.runtime.getenv(name) then return false end
  end
  return true
end

--- The list of {name =, slots =} of "a,b:4,gpu[1-3]"; `slots` where a host has no number. Nil and
--- what is wrong.
function mpirun.read_hosts(text, slots)
  local names, message = node_list.expand(text)
  if not names then return nil, message end
  local hosts, seen = {}, {}
  for i, item in ipairs(names) do
    local name, count = item:match "^([^:]+):(%d+)$"
    hosts[i] = { name = name or item, slots = math.tointeger(tonumber(count)) or slots }
    if hosts[i].slots == 0 or hosts[i].name:find "[^%w%.%-_]" then
      return nil, ("not a list of hosts: '%s'"):format(text)
    elseif seen[hosts[i].name] then
      return nil, ("host %s is given twice"):format(hosts[i].name)
    end
    seen[hosts[i].name] = true
  end
  if #hosts == 0 then return nil, "no hosts" end
  return hosts
end

--- The words of a text as a shell would cut it: at spaces, quotes kept together.
function mpirun.cut(text)
  local argv, word, quote = {}, nil, nil
  for letter in text:gmatch "." do
    if quote then
      if letter == quote then quote = nil else word = word .. letter end
    elseif letter == "'" or letter == '"' then
      quote, word = letter, word or ""
    elseif letter:find "%s" then
      argv[#argv + 1], word = word, nil
    else
      word = (word or "") .. letter
    end
  end
  if quote then return nil, ("a %s is not closed"):format(quote) end
  argv[#argv + 1] = word
  return argv
end

return mpirun
