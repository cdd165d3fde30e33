--- stdlib/metrics/RetrievalNormalizedDCG.lua: the normalized discounted cumulative gain (NDCG) of
-- rankings: DCG divided by that of the ideal ranking.
--
-- K. Jarvelin, J. Kekalainen, Cumulated Gain-Based Evaluation of IR Techniques, 2002.
--
-- DCG is the sum of relevance / log2(1 + rank). Documents with equal scores share their gains.
local Retrieval = require "ltrain.metrics.ranking_metric"

local RetrievalNormalizedDCG = Retrieval:extend("RetrievalNormalizedDCG")

RetrievalNormalizedDCG.__arguments = "| empty_target_action ignore_index top_k"

--- RetrievalNormalizedDCG{top_k = 10}
function RetrievalNormalizedDCG:init(options) Retrieval.init(self, options) end

local function discount(rank, k) return rank <= k and 1 / math.log(rank + 1, 2) or 0.0 end

-- The gain of documents in their order, equal scores averaged.
local function gain_of(list, k)
  local total, first = 0.0, 1
  while first <= #list do
    local last, gain, weight = first, 0.0, 0.0
    while last <= #list and list[last].score == list[first].score do
      gain, weight = gain + list[last].target, weight + discount(last, k)
      last = last + 1
    end
    total = total + gain / (last - first) * weight
    first = last
  end
  return total
end

--- Returns the value of one query for its first `k` documents.
function RetrievalNormalizedDCG:of_query(list, k) -- luacheck: no self
  local best, ideal = {}, 0.0
  for i, document in ipairs(list) do best[i] = document.target end
  table.sort(best, function(a, b) return a > b end)
  for i = 1, k do ideal = ideal + best[i] * discount(i, k) end
  return ideal > 0 and gain_of(list, k) / ideal or 0.0
end

return RetrievalNormalizedDCG
