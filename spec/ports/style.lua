-- spec/ports/style.lua: Neural style transfer: Gram matrices, and an image trained by L-BFGS.
local lt = require "ltrain"
local nn = lt.nn

local function gram(y) -- [C, H, W] -> [C, C]
  local rows = y:flatten(2)
  return rows:matmul(rows:t()) / y:numel()
end

return function(formulas)
  local vgg = formulas.fill(nn.ModuleList{nn.Conv2d(3, 6, 3, {padding = 1}),
    nn.Conv2d(6, 8, 3, {padding = 1})})
  vgg:requires_grad_(false)
  local function features(image)
    local a = vgg[1](image:unsqueeze(1)):relu()
    local b = vgg[2](a:max_pool2d(2)):relu()
    return a:squeeze(1), b:squeeze(1)
  end
  local _, content = features(formulas.wave{3, 12, 12})
  local style_a, style_b = features(formulas.wave({3, 12, 12}, 1))
  local image, losses = formulas.wave({3, 12, 12}, 2):requires_grad_(), {}
  local optimizer = lt.optim.LBFGS({image}, {max_iter = 2})
  for step = 1, 20 do
    local loss = optimizer:step(function()
      optimizer:zero_grad()
      local a, b = features(image)
      local style = lt.mse_loss(gram(a), gram(style_a)) + lt.mse_loss(gram(b), gram(style_b))
      local loss = 100 * style + lt.mse_loss(b, content)
      loss:backward()
      return loss
    end)
    losses[step] = loss:item()
  end
  return losses
end
