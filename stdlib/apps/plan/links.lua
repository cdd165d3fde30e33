--- stdlib/apps/plan/links.lua: what moves bytes between ranks: { intra = within a machine, inter =
--- between machines, overlaps = beside computation }. A link is { bandwidth = bytes a second,
--- latency = seconds of a message }; between machines that of a whole machine.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local launch = require "ltrain.dist.launch"
local sizes = require "ltrain.apps.plan.sizes"

local links = {}

local LATENCY <const> = 5e-6 -- where none is given
local TIMES <const> = { s = 1, ms = 1e-3, us = 1e-6, ns = 1e-9 }
local SMALL <const>, LARGE <const> = 64, 1 << 18 -- elements of f32
local WINDOWS <const> = 150
local MOST <const> = 8 -- ranks that are measured

-- "100Gb 5us".
local function parse_link(text)
  local rate, rest = text:match "^%s*(%S+)%s*(.-)%s*$"
  local bandwidth = rate and sizes.rate(rate, true)
  if not bandwidth then return nil end
  local number, unit = rest:match "^([%d.]+)(%l+)$"
  if rest ~= "" and not (tonumber(number) and TIMES[unit]) then return nil end
  return { bandwidth = bandwidth,
    latency = rest == "" and LATENCY or tonumber(number) * TIMES[unit] }
end

--- Of "100Gb 5us", or "intra=450GB 3us, inter=100Gb 10us"; nil of anything else.
function links.parse(text)
  local found = { overlaps = true }
  for part in (text .. ","):gmatch "(.-)," do
    local name, rest = part:match "^%s*(%l+)%s*=(.*)$"
    if name ~= nil and name ~= "intra" and name ~= "inter" then return nil end
    local link = parse_link(rest or part)
    if not link then return nil end
    if name then
      found[name] = link
    else
      found.intra, found.inter = link, link
    end
  end
  return found
end

-- Seconds of fn(), the least of some windows of `calls`: others may use the machine.
local function seconds_of(calls, fn)
  local least = math.huge
  for _ = 1, WINDOWS do
    local began = c.runtime.clock()
    for _ = 1, calls do fn() end
    least = math.min(least, (c.runtime.clock() - began) / calls)
  end
  return least
end

--- How many ranks are measured for so many on a machine.
function links.count(ranks) return math.max(2, math.min(ranks, MOST)) end

--- That between ranks on this machine, by sums over `n` of them: where ranks share processors, each
--- message also waits for them. A sum takes twice the logarithm of the ranks in messages, and sends
--- 2 (n - 1) / n of its bytes (collective_costs.lua). Nothing moves while a rank computes: it does
--- both.
function links.measure(n)
  local small, large = launch(n, function()
    local function sum(elements, calls)
      local x = c.ones({ elements }, { dtype = "f32", device = "cpu" })
      return seconds_of(calls, function() collectives.all_reduce_(x, { op = "max" }) end)
    end
    return sum(SMALL, 20), sum(LARGE, 4)
  end)
  local moving = large > small and large - small or large -- else the small ones were disturbed
  return { intra = { latency = small / (2 * math.ceil(math.log(n, 2))),
    bandwidth = 2 * (n - 1) / n * 4 * LARGE / moving }, overlaps = false, ranks = n }
end

return links
