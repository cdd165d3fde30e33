-- spec/ports/mixture_of_experts.lua: sparse: the best two of four experts for each row.
local lt = require "ltrain"
local nn = lt.nn

local Experts = lt.Module:extend("Experts")

function Experts:init()
  self.gate = nn.Linear(8, 4, {bias = false})
  self.experts = nn.ModuleList{}
  for _ = 1, 4 do
    self.experts:append(nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8)))
  end
end

function Experts:forward(x) -- [N, 8] -> the same
  local weights, chosen = self.gate(x):topk(2)
  weights = weights:softmax(-1)
  local y = lt.zeros_like(x)
  for k, expert in ipairs(self.experts) do
    local mask = chosen:eq(k - 1)
    local row = mask:nonzero():select(2, 1)
    local weight = weights:masked_select(mask):unsqueeze(2)
    y = y:index_add(1, row, expert(x[row]) * weight)
  end
  return y
end

return function(formulas)
  local net, x = formulas.fill(Experts()), formulas.wave{12, 8}
  local y = x:roll(1, 2)
  local optimizer = lt.optim.AdamW(net:parameters(), {lr = 0.01})
  return formulas.steps(optimizer, function() return lt.mse_loss(net(x), y) end)
end
