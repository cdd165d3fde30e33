--- stdlib/metrics/RetrievalMRR.lua: the mean reciprocal rank of the first relevant document.
local Retrieval = require "ltrain.metrics.ranking_metric"

local RetrievalMRR = Retrieval:extend("RetrievalMRR")

RetrievalMRR.__arguments = "| empty_target_action ignore_index top_k"

--- RetrievalMRR{top_k = 10}
function RetrievalMRR:init(options) Retrieval.init(self, options) end

--- Returns the value of one query for its first `k` documents.
function RetrievalMRR:of_query(list, k) -- luacheck: no self
  for i = 1, k do
    if list[i].target > 0 then return 1 / i end
  end
  return 0.0
end

return RetrievalMRR
