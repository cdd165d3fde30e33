-- spec/ports/wgan_gp.lua: the critic of a Wasserstein GAN with gradient penalty.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local critic = formulas.fill(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1)))
  local real, fake = formulas.wave{12, 6}, formulas.wave({12, 6}, 1)
  local share = formulas.wave({12, 1}, 2) * 0.5 + 0.5
  local optimizer = lt.optim.Adam(critic:parameters(), {lr = 1e-3, betas = {0.0, 0.9}})
  return formulas.steps(optimizer, function()
    local mixed = (share * real + (1 - share) * fake):requires_grad_()
    local grad = lt.grad(critic(mixed):sum(), mixed, {create_graph = true})
    local penalty = (grad:norm(2, 2) - 1):square():mean()
    return critic(fake):mean() - critic(real):mean() + 10 * penalty
  end)
end
