-- spec/bench/xla_steps.lua: ltrain's side of ./dev bench xla.
--
--   ltrain xla_steps.lua MODEL STEPS FOLDER DEVICE
--
-- On the CPU it writes FOLDER/<model>.safetensors: the first weights (w.<name>), BATCHES batches
-- (x.<i>, y.<i>), which steps use in turn, and the losses of their first use; on another device it
-- repeats these steps. Prints what xla_steps.py prints.
local c = require "ltrain.c"
local lt = require "ltrain"
local models = require "spec.bench.torch_models"

local name, steps, folder, device = arg[1], tonumber(arg[2]), arg[3], arg[4]
local path <const> = ("%s/%s.safetensors"):format(folder, name)
local BATCHES <const> = 20
local clock <const> = c.runtime.clock

-- The weights of the first step and the batches; on the CPU new ones.
local function draw(net)
  lt.seed(1)
  local tensors = {}
  for key, tensor in pairs(net:state_dict()) do tensors["w." .. key] = tensor:clone() end
  for i = 0, math.min(steps, BATCHES) - 1 do
    local batch = models.batch(name)
    tensors["x." .. i], tensors["y." .. i] = batch[1], batch[2]
  end
  return tensors
end

local function load(net)
  local tensors, metadata = c.io.load_safetensors(path)
  local weights, losses = {}, {}
  for key, tensor in pairs(tensors) do weights[key:match "^w%.(.*)$" or ""] = tensor end
  weights[""] = nil
  net:load_state_dict(weights, false)
  for loss in metadata.losses:gmatch "%S+" do losses[#losses + 1] = tonumber(loss) end
  return tensors, losses
end

local net <const> = models.net(name)
local tensors, wanted
if device == "cpu" then tensors = draw(net) else tensors, wanted = load(net) end
net:to(device)
local optimizer <const> = models.optimizer(name, net)

local first, best, worst, losses = 0, math.huge, 0, {}
for i = 0, steps - 1 do
  local start = clock()
  local k = i % BATCHES
  local x, y = tensors["x." .. k]:to(device), tensors["y." .. k]:to(device)
  local loss = lt.cross_entropy(net(x), y)
  optimizer:zero_grad()
  loss:backward()
  optimizer:step()
  losses[i + 1] = loss:item()
  local seconds = clock() - start
  if i == 0 then first = seconds else best = math.min(best, seconds) end
  local far = wanted and wanted[i + 1] and math.abs(losses[i + 1] / wanted[i + 1] - 1) or 0
  if far ~= far or far > worst then worst = far end
end
if not wanted then
  local texts = {}
  for i = 1, math.min(steps, BATCHES) do texts[i] = ("%.17g"):format(losses[i]) end
  assert(c.io.save_safetensors(path, tensors, { losses = table.concat(texts, " ") }))
end
print(("first %.3f step %.6f worst %.2g"):format(first, best, worst))
