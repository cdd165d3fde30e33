-- spec/ports/vq_vae.lua: VQ-VAE: the nearest vectors of a codebook, gradients straight through.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.ModuleDict{encoder = nn.Linear(16, 4),
    codebook = nn.Embedding(8, 4), decoder = nn.Linear(4, 16)})
  local x = formulas.wave{24, 16}
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 5e-3})
  return formulas.steps(optimizer, function()
    local z = net.encoder(x)
    local q = net.codebook(lt.cdist(z, net.codebook.weight):argmin(2))
    local y = net.decoder(z + (q - z):detach())
    return lt.mse_loss(y, x) + lt.mse_loss(q, z:detach()) + 0.25 * lt.mse_loss(z, q:detach())
  end)
end
