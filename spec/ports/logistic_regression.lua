-- spec/ports/logistic_regression.lua: two classes, the positive one weighed more.
local lt = require "ltrain"

return function(formulas)
  local net, x = formulas.fill(lt.nn.Linear(4, 1)), formulas.wave{32, 4}
  local y = x:sum(2, {keepdim = true}):gt(0.2):to "f32"
  local loss_fn = lt.nn.BCEWithLogitsLoss{pos_weight = lt.tensor{1.5}}
  local optimizer = lt.optim.SGD(net:parameters(),
    {lr = 0.5, momentum = 0.9, nesterov = true, weight_decay = 1e-3})
  return formulas.steps(optimizer, function() return loss_fn(net(x), y) end)
end
