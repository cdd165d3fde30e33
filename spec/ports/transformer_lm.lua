-- spec/ports/transformer_lm.lua: a language model by nn.TransformerEncoder, clipping, StepLR.
local lt = require "ltrain"
local nn = lt.nn

local LM = lt.Module:extend("LM")

function LM:init()
  local layer = nn.TransformerEncoderLayer(16, 2, {dim_feedforward = 32, dropout = 0})
  self.embedding = nn.Embedding(20, 16)
  self.positions = nn.SinusoidalPositions(16)
  self.transformer_encoder = nn.TransformerEncoder(layer, 2)
  self.linear = nn.Linear(16, 20)
end

function LM:forward(ids) -- [N, T] -> [N, T, V]
  local x = self.positions(self.embedding(ids) * math.sqrt(16))
  local logits = self.linear(self.transformer_encoder(x, {causal = true}))
  return logits
end

function LM:training_step(text)
  local logits = self(text[{lt.all, {1, -2}}])
  return lt.cross_entropy(logits:flatten(1, 2), text[{lt.all, {2, -1}}]:flatten())
end

function LM:configure_optimizers()
  local optimizer = lt.optim.SGD(self:parameters(), {lr = 0.2})
  local scheduler = lt.optim.StepLR(optimizer, 5, {gamma = 0.95})
  return {optimizer = optimizer, lr_scheduler = {scheduler = scheduler, interval = "step"}}
end

return function(formulas)
  return formulas.fit(formulas.fill(LM()), {formulas.ids({4, 11}, 20)}, {gradient_clip_val = 0.5})
end
