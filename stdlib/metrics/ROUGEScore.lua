--- stdlib/metrics/ROUGEScore.lua: the ROUGE scores of summaries (Lin 2004): overlap with references
-- in n-grams (rouge1 to rouge9) or in the longest common subsequence of words of whole texts
-- (rougeL) or by sentences (rougeLsum).
--
-- Texts are lowercased; characters other than English letters and digits separate words.
-- Sentences are lines, as in Google's rouge_score; there is no stemmer.
local Metric = require "ltrain.metrics.Metric"
local Transcript = require "ltrain.metrics.edit_distance_metric"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"
local ngrams = require "ltrain.metrics.ngrams"
local lcs = require "ltrain.metrics.common_subsequence"

local ROUGEScore = Metric:extend("ROUGEScore")

ROUGEScore.higher_is_better = true

local KINDS <const> = { "precision", "recall", "fmeasure" }

local function wrong_key(keys)
  for _, key in ipairs(keys) do
    if type(key) ~= "string" or not (key:match "^rouge[1-9]$" or key == "rougeL"
      or key == "rougeLsum") then
      return ("must be 'rouge1' to 'rouge9', 'rougeL' or 'rougeLsum': got %s"):format(
        errors.show(key))
    end
  end
end

ROUGEScore.__arguments = "| (use_stemmer) (normalizer) (tokenizer) accumulate rouge_keys"

ROUGEScore.options = {
  rouge_keys = { type = "table", default = { "rouge1", "rouge2", "rougeL", "rougeLsum" },
    check = wrong_key, doc = "what to compute" },
  accumulate = { type = "string", default = "best", choices = { "best", "avg" },
    doc = "over several references of a text: the highest F-measure, or the mean" },
}

--- ROUGEScore{rouge_keys = {"rouge1", "rougeL"}}
function ROUGEScore:init(options)
  local o = config.check(options, self.options, "metrics.ROUGEScore")
  self.rouge_keys, self.accumulate = o.rouge_keys, o.accumulate
  self:add_state("texts", 0)
  for _, key in ipairs(o.rouge_keys) do
    for _, kind in ipairs(KINDS) do self:add_state(key .. "_" .. kind, 0.0) end
  end
end

-- Precision, recall and F-measure of `hits` common words.
local function scores_of(hits, said, meant)
  if said == 0 or meant == 0 or hits == 0 then return { 0.0, 0.0, 0.0 } end
  local precision, recall = hits / said, hits / meant
  return { precision, recall, 2 * precision * recall / (precision + recall) }
end

local function of_runs(said, meant, n)
  local a, total_a = ngrams(said, n)
  local b, total_b = ngrams(meant, n)
  local hits = 0
  for run, count in next, a do hits = hits + math.min(count, b[run] or 0) end
  return scores_of(hits, total_a, total_b)
end

local function score(key, said, meant)
  if key == "rougeLsum" then
    return scores_of(lcs.summary_hits(said.lines, meant.lines), #said.words, #meant.words)
  elseif key == "rougeL" then
    return scores_of(lcs.common(said.words, meant.words), #said.words, #meant.words)
  end
  return of_runs(said.words, meant.words, tonumber(key:match "%d"))
end

-- The words of a text, and of each of its lines.
local function read(text)
  if type(text) ~= "string" then
    errors.blame("metrics.ROUGEScore: update needs texts: got %s", errors.show(text))
  end
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    lines[#lines + 1] = Transcript.words((line:lower():gsub("[^a-z0-9]+", " ")))
  end
  return { words = Transcript.words((text:lower():gsub("[^a-z0-9]+", " "))), lines = lines }
end

-- The scores of a text against the best of its references, or their mean.
local function over_references(self, key, said, references)
  local best, mean = nil, { 0.0, 0.0, 0.0 }
  for _, meant in ipairs(references) do
    local now = score(key, said, meant)
    for k = 1, 3 do mean[k] = mean[k] + now[k] / #references end
    -- Of equal ones the first, whatever the last bits are.
    if not best or now[3] > best[3] + 1e-9 then best = now end
  end
  return self.accumulate == "best" and best or mean
end

--- Updates the metric with a list of texts, and for each a reference or a list of references.
function ROUGEScore:update(predictions, targets)
  if type(predictions) == "string" then
    predictions, targets = { predictions }, { targets }
  elseif type(predictions) ~= "table" or type(targets) ~= "table" or #predictions ~= #targets then
    errors.blame("metrics.ROUGEScore: update needs a list of texts and a list of references: got "
      .. "%s and %s", errors.show(predictions), errors.show(targets))
  end
  for i, text in ipairs(predictions) do
    local said, references = read(text), {}
    local given = type(targets[i]) == "table" and targets[i] or { targets[i] }
    for k, reference in ipairs(given) do references[k] = read(reference) end
    for _, key in ipairs(self.rouge_keys) do
      local found = over_references(self, key, said, references)
      for k, kind in ipairs(KINDS) do
        local name = key .. "_" .. kind
        self[name] = self[name] + found[k]
      end
    end
    self.texts = self.texts + 1
  end
end

--- Returns the means over texts by name: rouge1_precision, rouge1_recall, rouge1_fmeasure, ...
function ROUGEScore:compute()
  local means = {}
  if self.texts == 0 then inputs.nothing(self) end
  for _, key in ipairs(self.rouge_keys) do
    for _, kind in ipairs(KINDS) do
      local name = key .. "_" .. kind
      means[name] = self.texts > 0 and self[name] / self.texts or inputs.NAN
    end
  end
  return means
end

return ROUGEScore
