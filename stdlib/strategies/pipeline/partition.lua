--- stdlib/strategies/pipeline/partition.lua: cuts a row of layers into stages so that the slowest
--- stage is as fast as it can be.

-- Where the sums of `costs` before each place are.
local function sums_of(costs)
  local sums = { [0] = 0 }
  for i, cost in ipairs(costs) do sums[i] = sums[i - 1] + cost end
  return sums
end

-- best[i]: the least cost of the largest of `k` parts of the first i layers, and where the last of
-- them begins after: from those of k - 1 parts.
local function one_part_more(sums, before, k)
  local best, cut = {}, {}
  for i = k, #sums do
    best[i] = math.huge
    for j = k - 1, i - 1 do
      local largest = math.max(before[j] or math.huge, sums[i] - sums[j])
      if largest < best[i] then best[i], cut[i] = largest, j end
    end
  end
  return best, cut
end

--- partition({3, 1, 1, 2}, 2) returns {1}: after which layers the first parts - 1 of `parts` parts
--- end, so that the largest sum of costs of a part is least. No part is empty.
return function(costs, parts)
  local sums, cuts = sums_of(costs), {}
  local best = { [0] = 0 }
  for k = 1, parts do best, cuts[k] = one_part_more(sums, best, k) end
  local ends, i = {}, #costs
  for k = parts, 2, -1 do
    i = cuts[k][i]
    ends[k - 1] = i
  end
  return ends
end
