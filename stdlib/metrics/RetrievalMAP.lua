--- stdlib/metrics/RetrievalMAP.lua: mean average precision (MAP) of rankings: precision at the rank
-- of each relevant document, averaged.
local Retrieval = require "ltrain.metrics.ranking_metric"

local RetrievalMAP = Retrieval:extend("RetrievalMAP")

RetrievalMAP.__arguments = "| empty_target_action ignore_index top_k"

--- RetrievalMAP{top_k = 10}
function RetrievalMAP:init(options) Retrieval.init(self, options) end

--- Returns the value of one query for its first `k` documents.
function RetrievalMAP:of_query(list, k) -- luacheck: no self
  local found, total = 0, 0.0
  for i = 1, k do
    if list[i].target > 0 then
      found = found + 1
      total = total + found / i
    end
  end
  return found > 0 and total / found or 0.0
end

return RetrievalMAP
