--- stdlib/cli/launch.lua: `ltrain launch`: one launcher on each host starts its ranks, and starts
--- them again when a rank fails or hosts come and go (stdlib/elastic).
--
-- What is wrong with the command line, or can be known of this host alone, is reported before the
-- other hosts hear of it.
local Agent = require "ltrain.elastic.Agent"
local HostDiscovery = require "ltrain.elastic.HostDiscovery"
local Rendezvous = require "ltrain.elastic.Rendezvous"
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local launch_options = require "ltrain.cli.launch_options"
local rank_command = require "ltrain.cli.rank_command"
local refuse = require "ltrain.cli.refuse"
local requeue = require "ltrain.cli.requeue"
local snapshot_memory = require "ltrain.elastic.snapshot_memory"
local stores = require "ltrain.elastic.stores"

local launch = {}

local process = c.runtime.process

local USAGE <const> = 2
local FIRST_PORT <const>, PORT_BLOCKS <const> = 20000, 750 -- of 16 each: clusters/Launch.lua
local RESOLVE_SECONDS <const> = 3
local SIGNALS <const> = { "TERM", "INT", "HUP", "USR1" }

-- What this host lacks to run the ranks of a plan; nil: nothing.
local function missing(parsed, plan)
  local script <const> = parsed.script
  if script == "-" then
    return "the ranks cannot all read standard input: write the script to a file"
  elseif c.io.kind(script) ~= "file" then
    return ("cannot open %s: there is no such file on this host"):format(script)
  elseif plan.discovery and c.io.kind(plan.discovery) ~= "file" then
    return ("--host_discovery_script: cannot open %s: there is no such file on this host"):format(
      plan.discovery)
  elseif c.runtime.getenv "LTRAIN_LAUNCH" then
    return ("this is already a rank of the job %s: ranks cannot launch ranks"):format(
      c.runtime.getenv "LTRAIN_LAUNCH")
  elseif plan.slots * plan.max == 1 then
    return nil
  end
  for _, part in ipairs(c.runtime.parts()) do
    if part.name == "ucx" and not part.present then
      return ("%d ranks are connected over UCX: %s"):format(plan.slots * plan.max, part.text)
    end
  end
end

-- The address under which the other hosts reach this one; nil and what is wrong.
local function address_of(plan)
  if plan.local_addr then
    local answer <const> = assert(process.probe({ { plan.local_addr, 9 } }, RESOLVE_SECONDS))[1]
    if not answer:find "^no such host" then return plan.local_addr end
    return nil, ("--local_addr: %s is not the name or address of a host"):format(plan.local_addr)
  end
  if not plan.url then return "127.0.0.1" end
  local names <const>, wrong = stores.hosts(plan.url)
  if not names then return nil, wrong end
  local asked <const> = {}
  if #names == 0 then return process.local_address() end
  for i, name in ipairs(names) do asked[i] = { name, 9 } end
  local why
  for i, answer in ipairs(assert(process.probe(asked, RESOLVE_SECONDS))) do
    if not answer:find "^no such host" and not answer:find "^no answer" then
      return process.local_address(names[i])
    end
    why = why or ("%s: %s"):format(names[i], answer)
  end
  return nil, ("--rdzv: %s: write the name or the address of a host that all hosts reach"):format(
    why)
end

local function random_port()
  return FIRST_PORT + 16 * ((c.runtime.pid() * 7919 + c.runtime.time() * 1e3 // 1) % PORT_BLOCKS)
end

local function random_seed() return c.runtime.rng_state().seed end

-- A name that no other job has.
local function new_job()
  return ("%s.%d.%d"):format(c.runtime.hostname(), c.runtime.pid(), c.runtime.time() // 1)
end

-- The signals that ask the launcher to end: the name of the first that has come, and whether Ctrl-C
-- was pressed after it.
local function watch_signals(host)
  for _, name in ipairs(SIGNALS) do host.note_signal(name) end
  return function()
    local first, count = nil, 0
    for _, name in ipairs(SIGNALS) do
      local times <const> = host.noted(name)
      if times then first, count = first or "SIG" .. name, count + times end
    end
    return first, count > 1 and host.noted "INT" ~= false
  end
end

-- A folder for the error files of the ranks: in memory where it can be, as a full disk may be what
-- they have to report.
local function make_folder()
  local name <const>, why = ("ltrain_launch_%d_%d"):format(c.runtime.pid(),
    c.runtime.time() * 1e6 // 1), nil
  for _, folder in ipairs { "/dev/shm", c.runtime.getenv "TMPDIR" or "/tmp" } do
    local path <const> = ("%s/%s"):format(folder, name)
    local made <const>, message = c.io.claim_folder(path)
    if made then return path end
    why = message or path .. " is there already"
  end
  return nil, why
end

local function remove_folder(path)
  for _, name in ipairs(c.io.list_folder(path) or {}) do c.io.remove(path .. "/" .. name) end
  c.io.remove(path)
end

local function say(text) console.say("launch: " .. text) end

-- The memory of the snapshots; nil where there is none: ranks resume from checkpoints then.
local function make_memory(slots)
  local memory <const>, message = snapshot_memory.new(slots)
  if not memory then say("no snapshots in memory: " .. message) end
  return memory
end

-- The list of hosts of a plan that has one.
local function discovery_of(plan, place)
  local script <const> = plan.discovery
  if not script then return nil end
  return HostDiscovery { script = script:find "/" and script or "./" .. script,
    output = place.folder .. "/hosts", slots = plan.slots, most = c.dist.max_ranks, say = say,
    names = { plan.host_id, c.runtime.hostname(), place.address } }
end

-- Runs the plan; returns the exit status.
local function run(parsed, host, plan, place)
  local store <const>, folder, job = place.store, place.folder, place.job
  local rendezvous <const> = Rendezvous { store = store, job = job, min = plan.min, max = plan.max,
    max_restarts = plan.max_restarts, seed = random_seed(),
    settle = plan.url and plan.settle or 0,
    host = { id = plan.host_id, name = plan.host_id, address = place.address,
             port = plan.port or random_port(), slots = plan.slots } }
  local discovery <const> = discovery_of(plan, place)
  local agent <const> = Agent { rendezvous = rendezvous, job = job, name = plan.host_id,
    command = rank_command(parsed, "run", launch_options.own), folder = folder,
    grace = plan.grace, join_timeout = plan.join_timeout, max_restarts = plan.max_restarts,
    memory = make_memory(plan.slots), discovery = discovery,
    signals = watch_signals(host), say = say }
  local status <const>, closing = agent:run()
  if discovery then discovery:close() end
  store:close()
  remove_folder(folder)
  if not plan.url or status < 128 then requeue.forget(job) end
  say(closing)
  return status
end

--- The word's main: returns the exit status, that of the job.
function launch.main(word, parsed, host)
  local plan, wrong = launch_options.read(parsed.options)
  wrong = wrong or missing(parsed, plan)
  if wrong then return refuse(host, word, wrong, USAGE) end
  local place <const> = {}
  place.address, wrong = address_of(plan)
  if place.address then place.store, wrong = stores.open(plan.url) end
  if place.store then
    place.job = plan.job or place.store.job or plan.url and "job" or new_job()
    wrong = Rendezvous.refusal(place.store, place.job)
  end
  if place.store and not wrong then place.folder, wrong = make_folder() end
  if not place.folder then return refuse(host, word, wrong, USAGE) end
  return run(parsed, host, plan, place)
end

return launch
