-- spec/bench/load_steps.lua: steps a second of a small MLP; load.sh runs it.
local lt = require "ltrain"

local nn = lt.nn
local clock <const> = require("ltrain.c").runtime.clock
local B <const>, SECONDS <const> = 64, tonumber(arg[1])

lt.seed(1)
local net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
  nn.Linear(128, 10))
local optimizer = lt.optim.Adam(net:parameters(), { lr = 1e-3 })
local x, y = lt.randn(B, 784), lt.zeros(B):to("i64")

local function steps_for(seconds)
  local start, steps = clock(), 0
  repeat
    local loss = lt.cross_entropy(net(x), y)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    steps = steps + 1
  until clock() - start >= seconds
  return steps / (clock() - start)
end

steps_for(0.5) -- made at the first use, and seen of the load
print(("%.0f"):format(steps_for(SECONDS)))
