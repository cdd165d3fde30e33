-- spec/ports/real_nvp.lua: RealNVP: a normalizing flow of affine couplings.
local lt = require "ltrain"
local nn = lt.nn

local Coupling = lt.Module:extend("Coupling")

function Coupling:init()
  self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 4))
end

function Coupling:forward(x) -- [N, 4] -> the same, and the logarithm of the determinant [N]
  local a, b = table.unpack(x:chunk(2, 2))
  local log_scale, shift = table.unpack(self.net(a):chunk(2, 2))
  log_scale = log_scale:tanh()
  return lt.cat({b * log_scale:exp() + shift, a}, {dim = 2}), log_scale:sum(2)
end

return function(formulas)
  local flow = formulas.fill(nn.ModuleList(Coupling(), Coupling(), Coupling(), Coupling()))
  local x, prior = formulas.wave{24, 4} * 2, lt.distributions.Normal(0.0, 1.0)
  local optimizer = lt.optim.Adam(flow:parameters(), {lr = 5e-3})
  return formulas.steps(optimizer, function()
    local z, log_det = x, 0
    for _, coupling in ipairs(flow) do
      local y, more = coupling(z)
      z = y
      log_det = log_det + more
    end
    return -(prior:log_prob(z):sum(2) + log_det):mean()
  end)
end
