-- examples/text_classification.lua: a small transformer learns whether a review is good or bad.
--
--   ltrain run examples/text_classification.lua
--   ltrain run examples/text_classification.lua -- "the plot was not dull at all"
--
-- The reviews are made here; "not" turns their meaning, so that words alone do not tell. Passes
-- 95 % on reviews that it has not seen, within a minute; then says what it thinks of a few.
local lt = require "ltrain"
local nn = lt.nn

local GOOD = {"good", "great", "fine", "superb", "moving", "funny", "clever", "a delight"}
local BAD = {"bad", "dull", "awful", "poor", "boring", "flat", "silly", "a bore"}
local THINGS = {"film", "plot", "music", "cast", "ending", "story", "dialogue", "camera work"}
local OPENINGS = {"", "well, ", "honestly, ", "I have to say that ", "to my mind "}
local ENDINGS = {"", ".", " at all.", " from start to finish.", ", as my sister says.", "!"}

-- A review and its label: 1 where it is good.
local function review()
  local function one_of(list) return list[math.random(#list)] end
  local is_good, is_negated = math.random(2) == 1, math.random(3) == 1
  local word = one_of(is_good ~= is_negated and GOOD or BAD)
  local text = ("%sthe %s was %s%s%s"):format(one_of(OPENINGS), one_of(THINGS),
    is_negated and "not " or "", word, one_of(ENDINGS))
  return text, is_good and 1 or 0
end

lt.seed(1)
local function reviews(n)
  local texts, labels = {}, {}
  for k = 1, n do texts[k], labels[k] = review() end
  return texts, lt.tensor(labels, {dtype = "i64"})
end
local texts, labels = reviews(2000)
local val_texts, val_labels = reviews(500)
local tokenizer = lt.text.WordTokenizer.train(texts, {vocab_size = 200})

local LENGTH = 20 -- tokens: longer reviews are cut
local Classifier = lt.Module:extend("Classifier")

function Classifier:init(vocabulary, width)
  local layer = nn.TransformerEncoderLayer(width, 4, {dim_feedforward = 2 * width})
  self.tokens = nn.Embedding(vocabulary, width)
  self.positions = nn.LearnedPositions(LENGTH, width)
  self.layers = nn.TransformerEncoder(layer, 2)
  self.head = nn.Linear(width, 2)
  self.accuracy = lt.metrics.Accuracy()
end

function Classifier:forward(ids, mask) -- [N, T], bool [N, T] -> [N, 2]: the mean of what is there
  local x = self.layers(self.positions(self.tokens(ids)), {key_mask = mask})
  local here = mask:unsqueeze(3):float()
  local mean = (x * here):sum(2) / here:sum(2)
  local logits = self.head(mean)
  return logits
end

function Classifier:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1], batch[2]), batch[3])
  self:log("train_loss", loss, {prog_bar = true})
  return loss
end

function Classifier:validation_step(batch)
  self.accuracy(self(batch[1], batch[2]), batch[3])
  self:log("val_acc", self.accuracy, {prog_bar = true})
end

function Classifier:configure_optimizers()
  return lt.optim.AdamW(self:parameters(), {lr = 2e-3})
end

local function loader(list, targets, shuffle)
  local ids, mask = tokenizer:encode_batch(list, {length = LENGTH})
  local data = lt.data.TensorDataset(ids, mask, targets)
  return lt.data.DataLoader(data, {batch_size = 50, shuffle = shuffle})
end

local model = Classifier(tokenizer.vocab_size, 32)
local trainer = lt.Trainer{max_epochs = 5}
trainer:fit(model, {train = loader(texts, labels, true), val = loader(val_texts, val_labels)})

local asked = arg[1] and {arg[1]} or {"the story was superb.", "the story was not superb at all",
  "honestly, the music was not bad!"}
model:eval()
local _ <close> = lt.no_grad()
local ids, mask = tokenizer:encode_batch(asked, {length = LENGTH})
local good = model(ids:to(model.device), mask:to(model.device)):softmax(-1):select(2, 2)
for k, text in ipairs(asked) do
  trainer:print(("%3d %% good: %s"):format(math.floor(100 * good[k]:item() + 0.5), text))
end
