--- stdlib/apps/plan/traffic.lua: bytes that a rank sends in a step.
local traffic = {}

-- By kind of collective, what each of n ranks sends of a byte of the whole, around a ring
-- (Patarasuk and Yuan 2009).
local SENT <const> = {
  all_reduce = function(n) return 2 * (n - 1) / n end,
  all_gather = function(n) return (n - 1) / n end,
  reduce_scatter = function(n) return (n - 1) / n end,
  all_to_all = function(n) return (n - 1) / n end,
  broadcast = function(n) return (n - 1) / n end,
  reduce = function(n) return (n - 1) / n end,
  gather = function(n) return 1 / n end,
  scatter = function(n) return (n - 1) / n end,
  send = function() return 1 end,
}

--- Of a collective of a timeline (stand_in_ranks.lua).
function traffic.sent(work)
  local share = SENT[work.issue]
  return share and share(work.ranks) * work.bytes or 0
end

--- Of all collectives of a timeline.
function traffic.of(timeline)
  local bytes = 0
  for _, entry in ipairs(timeline) do
    if entry.issue then bytes = bytes + traffic.sent(entry) end
  end
  return math.floor(bytes + 0.5)
end

--- Collectives by kind, as c.dist.traffic has them: { all_reduce = { calls =, bytes = }, .. }.
function traffic.by_kind(timeline)
  local kinds = {}
  for _, entry in ipairs(timeline) do
    if entry.issue then
      local kind = kinds[entry.issue] or { calls = 0, bytes = 0 }
      kind.calls, kind.bytes = kind.calls + 1, kind.bytes + entry.bytes
      kinds[entry.issue] = kind
    end
  end
  return kinds
end

return traffic
