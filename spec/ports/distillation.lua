-- spec/ports/distillation.lua: soft targets of a teacher at temperature T, and labels.
local lt = require "ltrain"
local nn, T = lt.nn, 2

local function network(width)
  return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 5))
end

return function(formulas)
  local teacher, student = formulas.fill(network(64)):eval(), formulas.fill(network(16))
  local x, y = formulas.wave{16, 8}, formulas.ids({16}, 5)
  local optimizer = lt.optim.Adam(student:parameters(), {lr = 0.01})
  return formulas.steps(optimizer, function()
    local soft = lt.no_grad(function() return (teacher(x) / T):softmax(-1) end)
    local logits = student(x)
    local divergence = lt.kl_div((logits / T):log_softmax(-1), soft, {reduction = "batchmean"})
    return 0.25 * T ^ 2 * divergence + 0.75 * lt.cross_entropy(logits, y)
  end)
end
