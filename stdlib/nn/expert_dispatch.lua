-- stdlib/nn/expert_dispatch.lua: which token goes to which expert, and where the experts are
-- divided among ranks to which rank: the plan of one call of nn.MoE. n tokens, K choices of each, E
-- experts, N ranks.
--
-- An expert takes at most `capacity` tokens: all first choices before all second ones, then by rank
-- and place in the batch (Lepikhin et al., GShard, 2020). Counts of all ranks are known to each, so
-- that N ranks drop the tokens that one process with the joined batch drops.

local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"

local expert_dispatch = {}

-- How many of this rank's tokens have each expert as their k-th choice: [K, E].
local function count(choices, experts)
  local n, k = table.unpack(choices.shape)
  local counts = c.zeros(k * experts, { dtype = "i64", device = choices.device })
  if n == 0 then return counts:reshape(k, experts) end
  local places = choices + c.arange(k, { device = choices.device }) * experts
  return c.bincount(places:flatten(), { minlength = k * experts }):reshape(k, experts)
end

-- The number of the first of this rank's tokens among all of an expert's: [N, K, E] of counts.
local function starts_of(counts)
  local total = counts:sum(1)
  return (total:cumsum(1) - total):unsqueeze(1) + counts:cumsum(1) - counts
end

-- The k-th choice of token t is entry (k - 1) n + t. Entries by expert, in that order: their
-- numbers, and their experts.
local function sorted(choices)
  local entries = choices:transpose(1, 2):flatten()
  local m = entries.shape[1]
  local order = (entries * m + c.arange(m, { device = entries.device })):argsort()
  return order, entries:index_select(1, order)
end

-- Which of the sorted entries are within the capacity: a bool each.
local function within(capacity, starts, own, order, experts_of, n)
  local e = own.shape[2]
  local choice = n > 0 and order // n or order
  local by_expert = own:transpose(1, 2):flatten()
  local first = (by_expert:cumsum(1) - by_expert):reshape(e, own.shape[1]):transpose(1, 2):flatten()
  local place = choice * e + experts_of
  local number = c.arange(order.shape[1], { device = order.device }) - first:index_select(1, place)
  return (number + starts:flatten():index_select(1, place)):lt(capacity)
end

--- The plan of `choices`, [n, K] of E experts; `group`: the ranks among which experts are divided
--- (nil: this one has all). Fields: `entries`, numbers of entries that are taken, by expert;
--- `tokens`, theirs; `load`, the share of all choices that each expert has [E], before the
--- capacity; `kept`, a list for each rank of how many it sends to each expert; `dropped`, how many
--- of this rank's choices are not taken.
function expert_dispatch.plan(choices, experts, capacity_factor, group)
  local n, k = table.unpack(choices.shape)
  local own = count(choices, experts)
  local counts = group and collectives.all_gather(own, { group = group }) or own:unsqueeze(1)
  local total = counts:sum():item()
  local order, experts_of = sorted(choices)
  local kept = counts
  if capacity_factor then
    local capacity = math.ceil(capacity_factor * total / experts)
    local starts, rank = starts_of(counts), group and group:rank() or 0
    kept = (capacity - starts):clamp(0):minimum(counts)
    order = order:masked_select(within(capacity, starts:select(1, rank + 1), own, order,
      experts_of, n))
  end
  return {
    entries = order, tokens = n > 0 and order % n or order,
    load = counts:sum(1):sum(1):to "f64" / math.max(total, 1),
    kept = kept:sum(2):tolist(), dropped = n * k - order.shape[1],
  }
end

--- Where the rows of all ranks go in a buffer [experts here, `most`, ..] that is flat in its first
--- two dims: rows come by rank, then by expert. Returns [rows] positions from 0, and `most`, the
--- number of rows of the expert that has most. `first`: the number of the first expert here.
function expert_dispatch.slots(kept, first, count_here, device)
  local sums, most, list = {}, 0, {}
  for e = 1, count_here do
    sums[e] = 0
    for _, counts in ipairs(kept) do sums[e] = sums[e] + counts[first + e] end
    most, sums[e] = math.max(most, sums[e]), 0
  end
  for _, counts in ipairs(kept) do
    for e = 1, count_here do
      local from, rows = (e - 1) * most + sums[e], counts[first + e]
      list[#list + 1] = c.arange(from, from + rows, { device = device })
      sums[e] = sums[e] + rows
    end
  end
  return c.cat(list), most
end

return expert_dispatch
