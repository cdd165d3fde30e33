-- spec/ports/adversarial.lua: FGSM: training on inputs moved along the sign of their gradient.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 3)))
  local x, y = formulas.wave{16, 8}, formulas.ids({16}, 3)
  local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.2})
  return formulas.steps(optimizer, function()
    local inputs = x:clone():requires_grad_()
    local grad = lt.grad(lt.cross_entropy(net(inputs), y), inputs)
    return lt.cross_entropy(net(x + 0.1 * grad:sign()), y)
  end)
end
