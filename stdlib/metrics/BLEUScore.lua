--- stdlib/metrics/BLEUScore.lua: the BLEU score of a corpus (Papineni et al. 2002): the geometric
-- mean of n-gram precisions, times the brevity penalty.
--
-- Words are separated by white space: tokenize texts first.
local Metric = require "ltrain.metrics.Metric"
local Transcript = require "ltrain.metrics.edit_distance_metric"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"
local ngrams = require "ltrain.metrics.ngrams"

local BLEUScore = Metric:extend("BLEUScore")

BLEUScore.__arguments = "| n_gram smooth weights"

BLEUScore.higher_is_better = true

BLEUScore.options = {
  n_gram = { type = "integer", default = 4, min = 1, doc = "largest n of the n-grams" },
  smooth = { type = "boolean", default = false,
    doc = "add 1 to the counts of n-grams, n > 1 (Lin and Och 2004)" },
  weights = { type = "table", doc = "weights of the n-gram orders; equal by default" },
}

--- BLEUScore{n_gram = 4}
function BLEUScore:init(options)
  local o = config.check(options, self.options, "metrics.BLEUScore")
  if o.weights and #o.weights ~= o.n_gram then
    errors.blame("metrics.BLEUScore: n_gram = %d: got %d weights", o.n_gram, #o.weights)
  end
  for name, value in next, o do self[name] = value end
  self:add_state("found", c.zeros({ o.n_gram }, { dtype = "i64" }))
  self:add_state("runs", c.zeros({ o.n_gram }, { dtype = "i64" }))
  self:add_state("said", 0)
  self:add_state("meant", 0)
end

-- Predictions as a list, and for each the list of its references.
local function read(predictions, targets)
  if type(predictions) == "string" then
    predictions = { predictions }
    if type(targets) ~= "table" or type(targets[1]) == "string" then targets = { targets } end
  end
  if type(predictions) ~= "table" or type(targets) ~= "table" then
    errors.blame("metrics.BLEUScore: update needs a list of texts and a list of references: got "
      .. "%s and %s", errors.show(predictions), errors.show(targets))
  elseif #predictions ~= #targets then
    errors.blame("metrics.BLEUScore: %d predictions, %d targets", #predictions, #targets)
  end
  local references = {}
  for i, of_one in ipairs(targets) do
    references[i] = type(of_one) == "string" and { of_one } or of_one
  end
  return predictions, references
end

-- The largest count of each n-gram in any reference.
local function most_of(references, n)
  local most = {}
  for _, words in ipairs(references) do
    for run, count in next, (ngrams(words, n)) do most[run] = math.max(most[run] or 0, count) end
  end
  return most
end

-- The length of the reference that is nearest to `length`.
local function nearest(references, length)
  local best
  for _, words in ipairs(references) do
    if not best or math.abs(#words - length) < math.abs(best - length) then best = #words end
  end
  return best or 0
end

local function add(self, said, references, found, runs)
  self.said, self.meant = self.said + #said, self.meant + nearest(references, #said)
  for n = 1, self.n_gram do
    local most = most_of(references, n)
    local counts, total = ngrams(said, n)
    for run, count in next, counts do
      found[n] = found[n] + math.min(count, most[run] or 0)
    end
    runs[n] = runs[n] + total
  end
end

--- Updates the metric with a list of texts, and for each a reference or a list of references.
function BLEUScore:update(predictions, targets)
  predictions, targets = read(predictions, targets)
  local found, runs = {}, {}
  for n = 1, self.n_gram do found[n], runs[n] = 0, 0 end
  for i, text in ipairs(predictions) do
    local references = {}
    for k, reference in ipairs(targets[i]) do references[k] = Transcript.words(reference) end
    add(self, Transcript.words(text), references, found, runs)
  end
  self.found = self.found + c.tensor(found, { device = self.found.device })
  self.runs = self.runs + c.tensor(runs, { device = self.runs.device })
end

--- Returns the score, from 0 to 1; nan without texts, which is reported once.
function BLEUScore:compute()
  if self.meant == 0 and self.said == 0 then return inputs.nothing(self) end
  local found, runs, sum = self.found:tolist(), self.runs:tolist(), 0.0
  for n = 1, self.n_gram do
    if found[n] == 0 then return 0.0 end
    local more = self.smooth and n > 1 and 1 or 0
    local weight = self.weights and self.weights[n] or 1 / self.n_gram
    sum = sum + weight * math.log((found[n] + more) / (runs[n] + more))
  end
  local brevity = self.said > self.meant and 0.0 or 1 - self.meant / self.said
  return math.exp(brevity + sum)
end

return BLEUScore
