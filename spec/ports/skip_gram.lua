-- spec/ports/skip_gram.lua: word2vec: pairs of words against words drawn at random.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.ModuleDict{centre = nn.Embedding(20, 8),
    context = nn.Embedding(20, 8)})
  local centre, near = formulas.ids({24}, 20), formulas.ids({24}, 20, 3)
  local far = formulas.ids({24, 5}, 20, 7)
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.02})
  return formulas.steps(optimizer, function()
    local v = net.centre(centre)
    local near_score = (v * net.context(near)):sum(-1)
    local far_score = lt.bmm(net.context(far), v:unsqueeze(3)):squeeze(3)
    return -(near_score:logsigmoid():mean() + (-far_score):logsigmoid():sum(2):mean())
  end)
end
