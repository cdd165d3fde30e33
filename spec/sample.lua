-- spec/sample.lua: which of many cases of one kind an everyday run has: the same ones each time,
-- others for another LT_TEST_SEED, all of them with --exhaustive. A file that asks has the tag
-- `sampled`.
local EXHAUSTIVE <const> = os.getenv "LT_EXHAUSTIVE" == "1"
local SEED <const> = math.tointeger(tonumber(os.getenv "LT_TEST_SEED")) or 1

-- The rows of each group, in lists, in the order of the groups' first rows.
local function groups_of(rows, group_of)
  local groups, by_name = {}, {}
  for _, row in ipairs(rows) do
    local name = group_of and group_of(row) or ""
    if not by_name[name] then
      by_name[name] = {}
      groups[#groups + 1] = by_name[name]
    end
    table.insert(by_name[name], row)
  end
  return groups
end

-- Of `rows` every nth, but one at least of each group, whose name group_of(row) is (nil: all rows
-- are one group).
return function(rows, n, group_of)
  if EXHAUSTIVE then return rows end
  local chosen = {}
  for g, group in ipairs(groups_of(rows, group_of)) do
    local stride = math.min(n, #group)
    for k, row in ipairs(group) do
      if (k + g + SEED) % stride == 0 then chosen[#chosen + 1] = row end
    end
  end
  return chosen
end
