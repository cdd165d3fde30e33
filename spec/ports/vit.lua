-- spec/ports/vit.lua: a vision transformer: patches, a class token, learned positions.
local lt = require "ltrain"
local nn = lt.nn

local ViT = lt.Module:extend("ViT")

function ViT:init()
  self.patch = nn.Conv2d(3, 16, 4, {stride = 4})
  self.class_token = lt.parameter(lt.zeros(1, 1, 16))
  self.positions = lt.parameter(lt.zeros(1, 17, 16))
  local layer = nn.TransformerEncoderLayer(16, 2,
    {dim_feedforward = 32, dropout = 0, activation = "gelu", norm_first = true})
  self.encoder = nn.TransformerEncoder(layer, 2, {norm = nn.LayerNorm(16)})
  self.head = nn.Linear(16, 5)
end

function ViT:forward(x) -- [N, 3, 16, 16] -> [N, 5]
  local tokens = self.patch(x):flatten(3):transpose(2, 3)
  tokens = lt.cat({self.class_token:expand(#x, -1, -1), tokens}, {dim = 2})
  return self.head(self.encoder(tokens + self.positions):select(2, 1))
end

return function(formulas)
  local net, x, y = formulas.fill(ViT()), formulas.wave{4, 3, 16, 16}, formulas.ids({4}, 5)
  local optimizer = lt.optim.AdamW(net:parameters(), {lr = 2e-3, weight_decay = 0.05})
  local scheduler = lt.optim.OneCycleLR(optimizer, 5e-3, {total_steps = 21})
  return formulas.steps(optimizer, function(step)
    if step > 1 then scheduler:step() end
    return lt.cross_entropy(net(x), y)
  end)
end
