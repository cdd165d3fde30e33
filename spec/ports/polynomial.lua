-- spec/ports/polynomial.lua: Learning PyTorch with examples: a polynomial by autograd alone.
local lt = require "ltrain"

return function()
  local x = lt.linspace(-math.pi, math.pi, 200)
  local y = x:sin()
  local w, losses = {}, {}
  for k = 1, 4 do w[k] = lt.tensor(0.1 * k, {requires_grad = true}) end
  for step = 1, 20 do
    local prediction = w[1] + w[2] * x + w[3] * x ^ 2 + w[4] * x ^ 3
    local loss = (prediction - y):pow(2):sum()
    loss:backward()
    local _ <close> = lt.no_grad()
    for _, p in ipairs(w) do
      p:sub_(1e-5 * p.grad)
      p.grad = nil
    end
    losses[step] = loss:item()
  end
  return losses
end
