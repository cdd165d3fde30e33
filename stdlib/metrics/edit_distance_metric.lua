--- stdlib/metrics/edit_distance_metric.lua: the base class of metrics of the edit distance of
--- texts.
--
-- V. Levenshtein, Binary Codes Capable of Correcting Deletions, Insertions, and Reversals, 1966.
--
-- The edit distance of two lists is the least number of insertions, deletions and substitutions
-- that make one of the other.
local Metric = require "ltrain.metrics.Metric"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"

local Transcript = Metric:extend("Transcript")

Transcript.higher_is_better = false

Transcript.options = {}

local STATES <const> = { "edits", "spoken", "heard", "longer", "texts" }

function Transcript:init(options)
  local o = config.check(options, self.options, "metrics." .. getmetatable(self).__name)
  for name, value in next, o do self[name] = value end
  for _, name in ipairs(STATES) do self:add_state(name, 0) end
end

--- Returns the words of a text, separated by white space.
function Transcript.words(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = word end
  return list
end

--- Returns the characters of a text: code points of UTF-8, bytes of other text.
function Transcript.characters(text)
  local list = {}
  for character in text:gmatch(utf8.len(text) and utf8.charpattern or ".") do
    list[#list + 1] = character
  end
  return list
end

--- The unit of comparison: words.
Transcript.unit = "words"

--- Returns the edit distance of two lists.
function Transcript.distance(a, b, substitution)
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local diagonal, unit = row[0], a[i]
    row[0] = i
    for j = 1, #b do
      local above = row[j]
      local best = unit == b[j] and diagonal or diagonal + substitution
      row[j] = math.min(best, above + 1, row[j - 1] + 1)
      diagonal = above
    end
  end
  return row[#b]
end

--- Returns two texts, or lists of the same length, as two lists.
function Transcript.read(who, predictions, targets)
  local lists = { predictions, targets }
  for k = 1, 2 do
    if type(lists[k]) == "string" then lists[k] = { lists[k] } end
    local list = lists[k]
    local wrong = type(list) ~= "table" and list
    for _, text in ipairs(wrong and {} or list or {}) do
      if type(text) ~= "string" then wrong = text end
    end
    if wrong or list == nil then
      errors.blame("metrics.%s: update needs two texts, or lists of them: got %s and %s", who,
        errors.show(predictions), errors.show(targets))
    end
  end
  if #lists[1] ~= #lists[2] then
    errors.blame("metrics.%s: %d predictions, %d targets", who, #lists[1], #lists[2])
  end
  return lists[1], lists[2]
end

--- Updates the metric with predicted and true texts: two strings, or lists of them.
function Transcript:update(predictions, targets)
  predictions, targets = self.read(getmetatable(self).__name, predictions, targets)
  local cut = self[self.unit]
  for i, target in ipairs(targets) do
    local said, meant = cut(predictions[i]), cut(target)
    self.edits = self.edits + self.distance(said, meant, self.substitution_cost or 1)
    self.spoken, self.heard = self.spoken + #meant, self.heard + #said
    self.longer, self.texts = self.longer + math.max(#meant, #said), self.texts + 1
  end
end

--- Returns the value; nan without words, which is reported once.
function Transcript:compute()
  local value = self:quotient()
  return value == value and value or inputs.nothing(self)
end

return Transcript
