-- spec/ports/translation.lua: Translation by a transformer: encoder, decoder, padding.
local lt = require "ltrain"
local nn = lt.nn

local Translator = lt.Module:extend("Translator")

function Translator:init()
  local options = {dim_feedforward = 32, dropout = 0, norm_first = true}
  self.source, self.target = nn.Embedding(15, 16), nn.Embedding(14, 16)
  self.positions = lt.parameter(lt.zeros(8, 16))
  self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, options), 2)
  self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, options), 2)
  self.generator = nn.Linear(16, 14)
end

function Translator:forward(source, target) -- [N, S], [N, T] -> [N, T, V]
  local seen = source:ne(0)
  local memory = self.encoder(self.source(source) + self.positions:narrow(1, 1, source:size(2)),
    {key_mask = seen})
  local y = self.decoder(self.target(target) + self.positions:narrow(1, 1, target:size(2)), memory,
    {causal = true, memory_key_mask = seen})
  return self.generator(y)
end

return function(formulas)
  local net = formulas.fill(Translator())
  local source, target = formulas.ids({4, 7}, 14) + 1, formulas.ids({4, 6}, 14)
  source[{1, {6, 7}}] = 0
  source[{3, {4, 7}}] = 0
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 5e-3, betas = {0.9, 0.98}, eps = 1e-9})
  return formulas.steps(optimizer, function()
    local logits = net(source, target[{lt.all, {1, -2}}])
    return lt.cross_entropy(logits:flatten(1, 2), target[{lt.all, {2, -1}}]:flatten(),
      {ignore_index = 0, label_smoothing = 0.1})
  end)
end
