--- stdlib/metrics/ranking_metric.lua: the base class of metrics of rankings: a value per query,
--- averaged.
--
-- All scores are kept until the end of the epoch. Among equal scores the less relevant document is
-- ranked first, so that the value does not depend on the order of batches and ranks.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"

local Retrieval = Metric:extend("Retrieval")

Retrieval.higher_is_better = true

Retrieval.options = {
  top_k = { type = "integer", min = 1,
    doc = "only the k highest scores of a query; all by default" },
  empty_target_action = { type = "string", default = "neg",
    choices = { "neg", "pos", "skip", "error" },
    doc = "a query without a relevant document counts as 0, as 1, not at all, or is an error" },
  ignore_index = { type = "integer", doc = "documents with this target are ignored" },
}

function Retrieval:init(options)
  local o = config.check(options, self.options, "metrics." .. getmetatable(self).__name)
  for name, value in next, o do self[name] = value end
  for _, name in ipairs { "scores", "targets", "queries" } do self:add_state(name, {}) end
end

--- Updates the metric with scores, relevances (0, 1, or higher) and the ids of queries, of one
--- shape.
function Retrieval:update(scores, targets, indexes)
  local who = getmetatable(self).__name
  inputs.check(who, scores, targets)
  inputs.check(who, scores, indexes)
  if not inputs.same_shape(scores, targets) or not inputs.same_shape(scores, indexes) then
    errors.blame("metrics.%s: shapes do not fit: scores %s, targets %s, indexes %s; expected the "
      .. "same", who, errors.show_shape(scores), errors.show_shape(targets),
      errors.show_shape(indexes))
  end
  local counts = self.ignore_index and targets:ne(self.ignore_index):reshape { -1 }
  local function kept(x, dtype)
    x = x:detach():reshape { -1 }:to(dtype)
    return counts and x:masked_select(counts) or x:clone()
  end
  table.insert(self.scores, kept(scores, "f64"))
  table.insert(self.targets, kept(targets, "i64"))
  table.insert(self.queries, kept(indexes, "i64"))
end

local function before(a, b)
  if a.score ~= b.score then return a.score > b.score end
  return a.target < b.target
end

-- The documents of each query, { score =, target = }, the highest score first.
local function lists_of(self)
  local scores, targets = c.cat(self.scores, 1):tolist(), c.cat(self.targets, 1):tolist()
  local lists, by_query = {}, {}
  for i, query in ipairs(c.cat(self.queries, 1):tolist()) do
    if not by_query[query] then
      by_query[query] = {}
      lists[#lists + 1] = by_query[query]
    end
    table.insert(by_query[query], { score = scores[i], target = targets[i] })
  end
  for _, list in ipairs(lists) do table.sort(list, before) end
  return lists
end

local function is_empty(list)
  for _, document in ipairs(list) do
    if document.target ~= 0 then return false end
  end
  return true
end

--- Returns the mean over queries; nan without images, which is reported once.
function Retrieval:compute()
  if #self.scores == 0 then return inputs.nothing(self, "there were no queries") end
  local total, count = 0.0, 0
  for _, list in ipairs(lists_of(self)) do
    local action, value = is_empty(list) and self.empty_target_action, nil
    if action == "error" then
      errors.blame("metrics.%s: a query has no relevant document", getmetatable(self).__name)
    elseif action then
      value = action == "pos" and 1.0 or action == "neg" and 0.0 or nil
    else
      value = self:of_query(list, self.top_k and math.min(self.top_k, #list) or #list)
    end
    if value then total, count = total + value, count + 1 end
  end
  return count > 0 and total / count or 0.0
end

return Retrieval
