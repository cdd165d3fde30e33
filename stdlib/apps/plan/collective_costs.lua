--- stdlib/apps/plan/collective_costs.lua: how long collectives take on links (links.lua), by the
--- formulas of their algorithms (Thakur, Rabenseifner and Gropp 2005).
local traffic = require "ltrain.apps.plan.traffic"

local collective_costs = {}

-- How many messages follow one another around a ring of n ranks.
local function hops(kind, n)
  return kind == "all_reduce" and 2 * (n - 1) or n - 1
end

-- Where the members of a group are: how many on a machine, on how many machines, and how many
-- groups of its kind share a machine's link.
local function places(work, world)
  local n = work.ranks
  local here = math.min(n, math.max(world.per_node // (work.stride or 1), 1))
  return here, math.max(n // here, 1), math.max(world.per_node // here, 1)
end

-- Up and down trees, or by doubling: as many messages as the logarithm of the ranks.
local function rounds(here, machines, links)
  local within = math.ceil(math.log(here, 2)) * links.intra.latency
  if machines == 1 then return within end
  return within + math.ceil(math.log(machines, 2)) * links.inter.latency
end

--- Seconds of a collective of a timeline in a world { ranks =, per_node = }: around a ring, which
--- sends least, or by a tree (sums, broadcasts) or doubling (gathers), with fewest messages one
--- after the other, whichever takes less.
function collective_costs.seconds(work, world, links)
  local n = work.ranks
  if n == 1 then return 0 end
  local here, machines, groups = places(work, world)
  local link = links.intra
  if machines > 1 then
    link = { latency = math.max(links.inter.latency, links.intra.latency),
      bandwidth = math.min(links.inter.bandwidth / groups, links.intra.bandwidth) }
  end
  local sent = traffic.sent(work)
  local ring = hops(work.issue, n) * link.latency + sent / link.bandwidth
  local both = work.issue == "all_reduce" and 2 or 1
  local is_tree = both == 2 or work.issue == "broadcast" or work.issue == "reduce"
  local bytes = is_tree and both * work.bytes or machines > 1 and here * sent or sent
  return math.min(ring, both * rounds(here, machines, links) + bytes / link.bandwidth)
end

return collective_costs
