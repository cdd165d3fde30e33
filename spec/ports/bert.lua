-- spec/ports/bert.lua: BERT's masked language model; the head's weights are the words' vectors.
local lt = require "ltrain"
local nn = lt.nn

local BERT = lt.Module:extend("BERT")

function BERT:init()
  self.words = nn.Embedding(20, 16)
  self.positions = nn.Embedding(8, 16)
  self.segments = nn.Embedding(2, 16)
  self.norm = nn.LayerNorm(16, {eps = 1e-12})
  self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2,
    {dim_feedforward = 32, dropout = 0, activation = "gelu"}), 2)
  self.transform = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16))
  self.bias = lt.parameter(lt.zeros(20))
end

function BERT:forward(ids, segments) -- [N, T] -> [N, T, V]
  local x = self.words(ids) + self.positions.weight + self.segments(segments)
  local y = self.transform(self.encoder(self.norm(x)))
  return lt.linear(y, self.words.weight, self.bias)
end

return function(formulas)
  local net, text = formulas.fill(BERT()), formulas.ids({4, 8}, 19) + 1
  local masked = formulas.ids({4, 8}, 4, 2):eq(0)
  local inputs, labels = text:masked_fill(masked, 0), text:masked_fill(~masked, -100)
  local segments = lt.arange(8):ge(5):to "i64":expand(4, 8)
  local optimizer = lt.optim.AdamW(net:parameters(), {lr = 5e-3})
  return formulas.steps(optimizer, function()
    return lt.cross_entropy(net(inputs, segments):transpose(2, 3), labels)
  end)
end
