-- spec/bench/torch_steps.lua: ltrain's side of ./dev bench torch; torch_steps.py wrote the file.
local c = require "ltrain.c"
local lt = require "ltrain"
local models = require "spec.bench.torch_models"

local name, steps, folder, threads = arg[1], tonumber(arg[2]), arg[3], tonumber(arg[4])
c.runtime.set_threads(threads)
local files <const> = require("ltrain.c").io
local tensors, metadata = files.load_safetensors(folder .. "/" .. name .. ".safetensors")
local net = models.net(name)
local weights = {}
for key, tensor in pairs(tensors) do
  local path = key:match("^w%.(.*)$")
  if path then weights[path] = tensor end
end
net:load_state_dict(weights)

local optimizer = models.optimizer(name, net)
local worst, best, i = 0, math.huge, 0
for want in metadata.losses:gmatch("%S+") do
  local x, y = tensors["x." .. i], tensors["y." .. i]
  local start = c.runtime.clock()
  local loss = lt.cross_entropy(net(x), y)
  optimizer:zero_grad()
  loss:backward()
  optimizer:step()
  best = math.min(best, c.runtime.clock() - start)
  worst = math.max(worst, math.abs(loss:item() - tonumber(want)) / tonumber(want))
  i = i + 1
end
assert(i == steps)
local theirs = tonumber(metadata.seconds)
print(("%s: %d steps, largest relative difference of the loss %.2g; ms a step: PyTorch %.3f, "
  .. "ltrain %.3f, ltrain / PyTorch %.2f"):format(name, steps, worst, theirs * 1e3, best * 1e3,
  best / theirs))
