--- stdlib/cli/doctor.lua: `ltrain doctor`: reports the launcher that it detected and why, and
--- measures each comm backend that works here with 64 MB.
--
-- Within a launch of several ranks they are joined, and the world is measured as it is. Otherwise
-- ranks are forked here, also on GPUs, and mpirun is asked to start two.
local c = require "ltrain.c"
local environments = require "ltrain.clusters.environments"
local mpirun = require "ltrain.clusters.mpirun"
local process_group = require "ltrain.cli.process_group"

local doctor = {}

local process = c.runtime.process

local MEGABYTES <const> = 64
local TIMES <const> = 3 -- the best of them
local RANKS <const> = 2
local MPIRUN_SECONDS <const> = 60

local function row(host, name, text)
  host.write(("%-12s %s\n"):format(name, text))
end

-- Seconds of an all_reduce of 64 MB over the ranks that are there; `device`: where it is.
local function measure(device)
  local lt = require "ltrain"
  local x, best = lt.ones(MEGABYTES * 1000000 // 4, { device = device }), math.huge
  local last = x[-1] -- reading it waits for the device
  local function sum()
    lt.dist.all_reduce_(x)
    last:item()
  end
  sum()
  for _ = 1, TIMES do
    lt.dist.barrier()
    local began = c.runtime.clock()
    sum()
    best = math.min(best, c.runtime.clock() - began)
  end
  return best
end

local function rate_text(ranks, seconds)
  if seconds < 1e-4 then return ("%d rank, %d MB need no time"):format(ranks, MEGABYTES) end
  return ("%d %s, %d MB in %.1f ms (%.1f GB/s)"):format(ranks, ranks == 1 and "rank" or "ranks",
    MEGABYTES, seconds * 1e3, MEGABYTES / 1e3 / seconds)
end

-- fn's text, or the error that it raised, as a row.
local function try(host, name, fn)
  local ok, text = pcall(fn)
  if not ok then text = "no: " .. tostring(text) end
  row(host, name, text)
end

local function print_launch(host)
  local environment, evidence, seen = environments.current()
  row(host, "launch", ("%s: %s"):format(environment.name, evidence))
  for _, one in ipairs(seen) do row(host, "", ("%s: %s"):format(one.name, one.text)) end
  local nodes = environment:num_nodes()
  row(host, "rank", ("%d of %d, local rank %d%s"):format(environment:global_rank(),
    environment:world_size(), environment:local_rank(),
    nodes and (", machine %d of %d"):format(environment:node_rank() or 0, nodes) or ""))
  local address = environment:main_address()
  if environment:world_size() > 1 and address then row(host, "rank 0 at", address) end
end

local function print_cores(host)
  local cores, shares = process.cores(), {}
  for _, ranks in ipairs { 1, 2, 4, 8 } do
    if ranks <= math.max(cores, RANKS) then
      shares[#shares + 1] = ("%d with %d"):format(math.max(cores // ranks, 1), ranks)
    end
  end
  row(host, "cores", ("%d of %d may be used; threads a rank: %s"):format(cores,
    c.runtime.cpu_count(), table.concat(shares, ", ")))
end

local function print_programs(host)
  for _, name in ipairs { "mpirun", "ssh", "srun", "scontrol" } do
    row(host, name, process.find(name) or "no: not found")
  end
end

local function try_shm()
  local dist = require "ltrain".dist
  return "yes: " .. rate_text(RANKS, (dist.launch(RANKS, function() return measure() end)))
end

-- Ranks on two GPUs: what moves their memory, and how fast.
local function try_gpus()
  local count, why = c.runtime.devices "cuda"
  if not count then return "no: " .. why end
  if count < RANKS then return "no: there is one GPU" end
  local lt = require "ltrain"
  local found = lt.dist.launch(RANKS, function()
    local device = "cuda:" .. lt.dist.rank()
    local seconds = measure(device)
    return { seconds, c.dist.link(device) }
  end)
  local text = rate_text(RANKS, found[1]):gsub("ranks", "GPUs", 1)
  if found[2] then return "yes: " .. text end
  return ("no: %s; by way of the host: %s"):format(found[3], text)
end

-- Two ranks of mpirun run this word, which then says one line.
local function try_mpi()
  local missing = mpirun.missing()
  if missing then return "no: " .. missing end
  local command, environment = mpirun.command(RANKS,
    { process.executable(), "doctor", "--figure" }, { hasty = true })
  local status, text, said = process.capture(command, MPIRUN_SECONDS, environment)
  if status == 0 then return "yes: " .. text:gsub("%s+$", "") end
  return ("no: mpirun: %s"):format((status and text or text .. "; it said: " .. (said or ""))
    :gsub("%s+$", ""))
end

-- The plugin of XLA devices: it is opened, and compiles a program. After the forks of the others.
local function try_xla()
  local lt = require "ltrain"
  local count, why = c.runtime.devices "xla"
  if not count then return "no: " .. why:gsub("^xla: ", "") end
  local x, began = lt.ones(1):to "xla", c.runtime.clock()
  x:add(1):item()
  local r = lt.xla.report()
  return ("yes: %s %s, %d device%s; a program %s in %.1f s"):format(r.platform, r.version, count,
    count == 1 and "" or "s", r.loaded > 0 and "of an earlier run loaded" or "compiled",
    c.runtime.clock() - began)
end

-- In a launch of several ranks. Rank 0 prints.
local function of_world(parsed, host)
  local status = process_group.join(host)
  if status then return status end
  local lt = require "ltrain"
  local seconds, here = measure(), lt.dist.world()
  if lt.dist.rank() == 0 then
    local text = rate_text(here.ranks, seconds)
    if parsed.options.figure then
      host.write(text .. "\n")
    else
      print_launch(host)
      print_cores(host)
      row(host, "comm " .. here.backend, "yes: " .. text)
    end
  end
  return process_group.leave(0)
end

--- The word's main: returns the exit status.
function doctor.main(_, parsed, host)
  if environments.current():world_size() > 1 then return of_world(parsed, host) end
  print_launch(host)
  print_cores(host)
  try(host, "comm self", function() return "yes: " .. rate_text(1, measure()) end)
  try(host, "comm shm", try_shm)
  try(host, "comm mpi", try_mpi)
  try(host, "comm nccl", try_gpus)
  try(host, "xla", try_xla)
  print_programs(host)
  return 0
end

return doctor
