--- stdlib/metrics/RetrievalMAP.lua: mean average precision of rankings: of each relevant document
-- the fraction of relevant ones up to it, averaged.
local Retrieval = require "ltrain.metrics.retrieval"

local RetrievalMAP = Retrieval:extend("RetrievalMAP")

RetrievalMAP.__arguments = "| empty_target_action ignore_index top_k"

--- RetrievalMAP{top_k = 10}
function RetrievalMAP:init(options) Retrieval.init(self, options) end

--- The value of one query: the first `k` of its documents count.
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
