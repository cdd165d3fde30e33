--- stdlib/apps/plan/times.lua: how long a step of a strategy takes: what a rank computes, measured
--- or by rates, and the simulated collectives.
local c = require "ltrain.c"
local collective_costs = require "ltrain.apps.plan.collective_costs"
local links = require "ltrain.apps.plan.links"
local meters = require "ltrain.apps.plan.meters"
local rates = require "ltrain.apps.plan.rates"
local rehearsal = require "ltrain.apps.plan.rehearsal"
local simulation = require "ltrain.apps.plan.simulation"
local sizes = require "ltrain.apps.plan.sizes"

local times = {}

local STEPS <const>, SECONDS <const> = 10, 0.3 -- that are timed, the more of both
local RESERVE <const> = 2 -- times the peak is what the CPU's memory must have

-- What is wrong with the options, which the rows of the command cannot say.
local WRONG <const> = {
  flops = "--flops: must be a rate like 300T: got %s",
  bandwidth = "--bandwidth: must be bytes a second like 3T: got %s",
  link = "--link: must be like '100Gb 5us', or 'intra=450GB 3us, inter=100Gb 10us' (b: bits, B: "
    .. "bytes): got %s",
}

--- The message of a wrong option; nil when nothing is wrong.
function times.wrong(options)
  local parsed = { flops = options.flops and sizes.rate(options.flops),
    bandwidth = options.bandwidth and sizes.rate(options.bandwidth),
    link = options.link and links.parse(options.link) }
  for _, name in ipairs { "flops", "bandwidth", "link" } do
    if options[name] and not parsed[name] then return WRONG[name]:format(options[name]) end
  end
  if (options.flops == nil) ~= (options.bandwidth == nil) then
    return "--flops, --bandwidth: a rate of each is needed: got one"
  end
end

--- Whether the options ask for times.
function times.are_wanted(options)
  return options.time or options.flops or options.link or options.simulate or false
end

--- What the options say, or this machine, before a script runs: { given = rates or nil, links =,
--- are_measured = these here, measured = links by number of ranks }; nil where no times are wanted.
--- `counts`: how many ranks a machine may have.
function times.prepare(options, counts)
  if not times.are_wanted(options) then return nil end
  local given = options.flops
    and rates.given(sizes.rate(options.flops), sizes.rate(options.bandwidth))
  local found = options.link and links.parse(options.link)
  local hardware = { given = given, links = found, are_measured = not found, measured = {} }
  for _, ranks in ipairs(found and {} or counts) do
    local n = links.count(ranks)
    hardware.measured[n] = hardware.measured[n] or links.measure(n)
    hardware.links = hardware.measured[n]
  end
  return hardware
end

-- Bytes of memory that the machine could give; nil where that is not known.
local function available()
  local text = c.io.read_file "/proc/meminfo" or ""
  local kilobytes = text:match "MemAvailable:%s+(%d+)"
  return kilobytes and tonumber(kilobytes) * 1024
end

-- The meters of a row's steps: by the clock where the CPU has room for them, else by rates.
local function choose(hardware, row)
  local free = available()
  if hardware.given or free and row.peak * RESERVE > free then
    hardware.rates = hardware.given or hardware.rates or rates.measure()
    return "rates", meters.trace(hardware.rates)
  end
  return "steps", meters.clock()
end

-- The timelines that have most in common: as many segments.
local function most_alike(timelines)
  local by_length, most = {}, {}
  for _, timeline in ipairs(timelines) do
    local list = by_length[#timeline] or {}
    by_length[#timeline] = list
    list[#list + 1] = timeline
    if #list > #most then most = list end
  end
  return most
end

-- A timeline with the least of each segment's seconds, for others may use the machine, of the steps
-- that did the same.
local function shortest(timelines)
  local alike, result = most_alike(timelines), {}
  for i, entry in ipairs(alike[1]) do
    result[i] = entry
    if entry.seconds then
      local least = math.huge
      for _, timeline in ipairs(alike) do
        least = math.min(least, timeline[i].seconds or math.huge)
      end
      result[i] = { seconds = least }
    end
  end
  return result
end

-- Threads of a rank, and how many ranks a processor has.
local function share_processors(per_node)
  local processors = c.runtime.cpu_count()
  local threads = math.min(c.runtime.get_threads(), math.max(processors // per_node, 1))
  return threads, math.max(per_node * threads / processors, 1)
end

local function slowed(timeline, by)
  local result = {}
  for i, entry in ipairs(timeline) do
    result[i] = entry.seconds and { seconds = entry.seconds * by } or entry
  end
  return result
end

--- Adds to a row the `seconds` of a step, those of it that a rank computes, `computing`, and the
--- `method`, "steps" or "rates". `o`: as of rehearsal.run. Returns nil and a message where no step
--- can be made.
function times.add(row, o, hardware)
  local method, meter = choose(hardware, row)
  local threads, share = share_processors(o.per_node)
  local before = c.runtime.get_threads()
  c.runtime.set_threads(threads)
  local _ <close> = setmetatable({}, { __close = function()
    c.runtime.set_threads(before)
    meter:close()
  end })
  local found, message = rehearsal.run(setmetatable({ meter = meter,
    timed = method == "steps" and STEPS or 1,
    timed_seconds = method == "steps" and SECONDS or 0, on_cpu = method == "steps" or o.on_cpu },
    { __index = o }))
  if not found then return nil, message end
  local timeline = shortest(found.timed)
  if not hardware.given then timeline = slowed(timeline, share) end
  local link = hardware.measured[links.count(o.per_node)] or hardware.links
  row.seconds, row.computing = simulation.run(timeline, function(work)
    return collective_costs.seconds(work, o, link)
  end, link.overlaps)
  row.method, row.threads = method, threads
  return true
end

return times
