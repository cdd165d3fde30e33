--- stdlib/cli/launch_options.lua: the options of `ltrain launch`, with torchrun's names where it
--- has them, and what they mean together.
local c = require "ltrain.c"
local cuda = require "ltrain.core.cuda"

local launch_options = {}

local MOST_HOSTS <const> = 4096

--- Rows as in commands.lua. `instead`: an option of torchrun that is not taken, and what to write.
launch_options.rows = {
  { name = "nnodes", type = "integer|string", value = "N|MIN:MAX", default = 1,
    doc = "how many hosts: as many, or from MIN to MAX; default 1" },
  { name = "nproc_per_node", type = "integer|string", value = "N|auto",
    doc = "ranks on this host; auto: its GPUs, or one; default 1" },
  { name = "max_restarts", type = "integer", value = "N", min = 0,
    doc = "how often ranks may fail until the job ends; default 3. Hosts that come or go do not "
      .. "count" },
  { name = "rdzv", type = "string", value = "URL",
    doc = "where the hosts meet: tcp://HOST:PORT (one of the hosts), etcd://HOST:PORT,.../JOB, or "
      .. "file:///FOLDER that all share; without it the job has one host" },
  { name = "grace", type = "number", value = "SECONDS", above = 0,
    doc = "how long ranks may take to stop at the end of their batch, when the launcher gets "
      .. "SIGTERM or a host is let in; default 25" },
  { name = "join_timeout", type = "number", value = "SECONDS", above = 0,
    doc = "how long to wait for enough hosts; default 300" },
  { name = "last_call", type = "number", value = "SECONDS", min = 0,
    doc = "with at least MIN hosts: how long nobody must have come until a round begins with "
      .. "fewer than MAX; default 2" },
  { name = "host_id", type = "string", value = "NAME",
    doc = "the name of this host in the job; default: its host name. Two launchers on one host "
      .. "need two" },
  { name = "local_addr", type = "string", value = "ADDRESS",
    doc = "the address under which the other hosts reach this one; default: that on the way to "
      .. "--rdzv" },
  { name = "port", type = "integer", value = "N", min = 1, max = 65520,
    doc = "the first of 16 ports, of which rank 0 takes a free one; default: any above 20000" },
  { name = "host_discovery_script", type = "string", value = "FILE",
    doc = "as Horovod's: prints HOST:RANKS for each host that may take part; run each second. A "
      .. "host that it does not print waits" },
  { name = "standalone", type = "boolean", value = "true|false",
    doc = "one host, as without --rdzv" },
  { name = "rdzv_endpoint", type = "string", value = "HOST:PORT",
    doc = "as torchrun's, in place of --rdzv" },
  { name = "rdzv_backend", type = "string", value = "c10d|etcd|static",
    choices = { "c10d", "etcd", "etcd-v2", "static" },
    doc = "likewise: c10d and static are tcp://" },
  { name = "rdzv_id", type = "string", value = "JOB", doc = "likewise: the name of the job" },
  { name = "master_addr", type = "string", value = "HOST", doc = "likewise, with --master_port" },
  { name = "master_port", type = "integer", value = "N", min = 1, max = 65535,
    doc = "likewise; default 29500" },
  { name = "node_rank", type = "integer", value = "N", min = 0,
    doc = "accepted as torchrun's, and not used: hosts are numbered in the order in which they "
      .. "come, and keep their numbers" },
}

local INSTEAD <const> = {
  no_python = "it is not needed: ranks run `ltrain run SCRIPT`",
  module = "give the script's file",
  run_path = "it is not needed",
  monitor_interval = "failures are noticed at once",
  start_method = "ranks are processes of their own: it is not needed",
  role = "all ranks have the same role",
  log_dir = "what ranks print appears here; each run has a console.log in its folder",
  redirects = "redirect the output of ltrain launch; --verbose prints that of all ranks",
  tee = "redirect the output of ltrain launch; --verbose prints that of all ranks",
  local_ranks_filter = "--verbose prints the output of all ranks, otherwise that of rank 0",
  rdzv_conf = "write --join_timeout, --last_call; users and certificates are part of --rdzv's URL",
  devices = "write --nproc_per_node N",
  nprocs = "write --nproc_per_node N",
  np = "write --nproc_per_node N, the ranks of this host",
  num_proc = "write --nproc_per_node N, the ranks of this host",
  num_processes = "write --nproc_per_node N, the ranks of this host",
  min_np = "write --nnodes MIN:MAX, in hosts",
  max_np = "write --nnodes MIN:MAX, in hosts",
  slots = "write --nproc_per_node N",
  slots_per_host = "write --nproc_per_node N",
  num_nodes = "write --nnodes N or --nnodes MIN:MAX",
  launcher = "ltrain launch is the launcher: without mpirun",
  hosts = "run ltrain launch on each host",
}

--- Names of these options: what ranks are not given.
launch_options.own = {}
for _, row in ipairs(launch_options.rows) do launch_options.own[row.name] = true end
for name, text in next, INSTEAD do
  table.insert(launch_options.rows, { name = name, instead = text })
end

-- MIN and MAX of --nnodes; nil and what is wrong.
local function read_nnodes(value)
  local min, max = tostring(value):match "^(%d+):(%d+)$"
  if not min then min = tostring(value):match "^%d+$" end
  min = math.tointeger(tonumber(min or ""))
  max = max and math.tointeger(tonumber(max)) or min
  if not min or min < 1 or max < min or max > MOST_HOSTS then
    return nil, ("--nnodes: must be N or MIN:MAX, from 1 to %d: got '%s'"):format(MOST_HOSTS,
      tostring(value))
  end
  return min, max
end

local function read_slots(value)
  if value == "auto" or value == "gpu" then return math.max(cuda.device_count(), 1) end
  if value == "cpu" then return c.runtime.process.cores() end
  local slots <const> = math.tointeger(tonumber(value))
  if slots and slots >= 1 and slots <= c.dist.max_ranks then return slots end
  return nil, ("--nproc_per_node: must be 1 to %d, or auto: got '%s'"):format(c.dist.max_ranks,
    tostring(value))
end

-- The URL that torchrun's options stand for; nil: they are not there, nil and what is wrong.
local function torchrun_url(o)
  local backend <const> = o.rdzv_backend or "c10d"
  local endpoint = o.rdzv_endpoint ~= "" and o.rdzv_endpoint or nil
  if o.master_addr then
    if endpoint then return nil, "--master_addr and --rdzv_endpoint exclude each other" end
    endpoint = ("%s:%d"):format(o.master_addr, o.master_port or 29500)
  end
  if not endpoint then
    return nil, o.rdzv_backend and ("--rdzv_backend %s: --rdzv_endpoint HOST:PORT is missing")
      :format(backend) or nil
  end
  return ("%s://%s"):format(backend:find "^etcd" and "etcd" or "tcp", endpoint)
end

-- Where the hosts meet, nil for one host; false and what is wrong.
local function read_url(o, max)
  local url <const>, wrong = torchrun_url(o)
  if wrong then return false, wrong end
  if o.rdzv and url then return false, "--rdzv has the address already: leave out torchrun's" end
  local found <const> = o.rdzv or url
  if o.standalone then
    if max > 1 then return false, "--standalone is for one host: leave out --nnodes" end
    return nil
  elseif not found and max > 1 then
    return false, ("--nnodes: %d hosts need --rdzv, the place where they meet: tcp://HOST:PORT of "
      .. "one of them, etcd://HOST:PORT, or file:///FOLDER"):format(max)
  end
  return found
end

--- The plan: {min, max, slots, max_restarts, url, job, grace, ...}; nil and what is wrong.
function launch_options.read(o)
  local min <const>, max = read_nnodes(o.nnodes or 1)
  if not min then return nil, max end
  local slots <const>, why = read_slots(o.nproc_per_node or 1)
  if not slots then return nil, why end
  local url <const>, wrong = read_url(o, max)
  if url == false then return nil, wrong end
  return {
    min = min, max = max, slots = slots, url = url, job = o.rdzv_id, port = o.port,
    max_restarts = o.max_restarts or 3, grace = o.grace or 25.0, settle = o.last_call or 2.0,
    join_timeout = o.join_timeout or 300.0, local_addr = o.local_addr,
    host_id = o.host_id or c.runtime.hostname(), discovery = o.host_discovery_script,
  }
end

return launch_options
