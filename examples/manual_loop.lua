-- examples/manual_loop.lua: training without a Trainer: tensors, backward, optimizer, by hand.
--
--   ltrain examples/manual_loop.lua
--
-- Fits y = sin(x) with a small network; prints the loss every 100 steps, and it falls below 0.01.
local lt = require "ltrain"
local nn, optim = lt.nn, lt.optim

lt.seed(1)
local steps = tonumber(arg and arg[1]) or 500

local net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
local optimizer = optim.Adam(net:parameters(), {lr = 0.01})

for step = 1, steps do
  local x = lt.rand(64, 1) * 6 - 3
  local y = x:sin()

  local prediction = net(x)
  local loss = lt.mse_loss(prediction, y)

  optimizer:zero_grad()
  loss:backward()
  optimizer:step()

  if step % 100 == 0 or step == steps then
    print(("step %d: loss %.5f"):format(step, loss:item()))
  end
end
