-- spec/dist/torch_spec.lua: two ranks lose what PyTorch loses in one process, step by step.
--
-- The losses are those of PyTorch 2.15.0, made by torch_losses.py from the same sines: 20 steps
-- with global batches of 16 samples, the last of 7, which two ranks share as 4 and 3.
-- tags: slow
local child = require "spec.cli.child"

local WANTED <const> = {
  sgd = {
    1.632085, 1.597285, 1.502447, 1.265052, 1.028126, 0.889731, 0.836843, 0.724784,
    0.526302, 0.671318, 0.669991, 0.541689, 0.608094, 0.395337, 0.520268, 0.601434,
    0.754158, 0.439699, 0.311148, 0.447071,
  },
  adam = {
    1.632085, 1.515872, 1.408072, 1.143137, 0.963246, 0.890133, 0.826207, 0.726917,
    0.505481, 0.575524, 0.587213, 0.515731, 0.501318, 0.295073, 0.416863, 0.469755,
    0.439666, 0.311155, 0.265127, 0.370759,
  },
  conv = {
    1.964128, 1.670799, 1.536355, 1.428988, 1.277377, 1.365876, 1.271600, 1.184985,
    0.915844, 0.897444, 0.653215, 0.548574, 0.567333, 0.408629, 0.422105, 0.360286,
    0.281553, 0.288216, 0.188923, 0.192284,
  },
}
local SAMPLES <const>, BATCH <const> = 311, 16

local PRELUDE <const> = [[
local lt = require "ltrain"
local nn, dist = lt.nn, lt.dist

local MLP, Conv = lt.Module:extend("MLP"), lt.Module:extend("Conv")
-- The order of assignment is that of the parameters.
function MLP:init()
  self.a = nn.Linear(64, 32)
  self.b = nn.Linear(32, 5)
end
function MLP:forward(x)
  local hidden = self.a(x):relu()
  return (self.b(hidden))
end
function Conv:init()
  self.a = nn.Conv2d(1, 6, 3, {padding = 1})
  self.b = nn.Conv2d(6, 8, 3)
  self.c = nn.Linear(32, 5)
end
function Conv:forward(x)
  x = self.a(x:view(-1, 1, 8, 8)):relu():max_pool2d(2)
  x = self.b(x):relu():flatten(2)
  return (self.c(x))
end

local function sines(shape, factor, offset)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  local all = (lt.arange(0, n, {dtype = "f64"}) * factor + offset):sin()
  return all:view(shape):to("f32")
end

local models = {
  sgd = {MLP, function(p) return lt.optim.SGD(p, {lr = 0.1, momentum = 0.9}) end},
  adam = {MLP, function(p) return lt.optim.Adam(p, {lr = 0.01}) end},
  conv = {Conv, function(p) return lt.optim.SGD(p, {lr = 0.05, momentum = 0.9}) end},
}
local name = arg[1]
local class, make_optimizer = table.unpack(models[name])
local net = class()
lt.no_grad(function()
  for k, parameter in ipairs(net:parameters()) do
    parameter:copy_(sines(parameter.shape, 1.3, k) * 0.2)
  end
end)
local x = sines({311, 64}, 0.61, 0.0)
local y = x:narrow(2, 1, 5):argmax(2)

-- The mean loss over the samples of all ranks.
local losses = {}
local function note(loss, count)
  local sums = dist.all_reduce(lt.tensor{loss:item() * count, count})
  losses[#losses + 1] = ("%.7f"):format(sums[1]:item() / sums[2]:item())
end
]]

local TRAINER <const> = PRELUDE .. [[
function net:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  note(loss, batch[1]:size(1))
  self:log("loss", loss, {on_epoch = true})
  return loss
end
function net:configure_optimizers() return make_optimizer(self:parameters()) end
local trainer = lt.Trainer{devices = 2, max_epochs = 1, logger = false,
  enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false}
trainer:fit(net, lt.data.DataLoader(lt.data.TensorDataset(x, y), {batch_size = 8}))
print(table.concat(losses, " "))
print(("%.7f"):format(trainer.callback_metrics.loss_epoch))
]]

local BY_HAND <const> = PRELUDE .. [[
dist.launch(2, function(rank)
  local ddp = dist.ddp(net)
  local optimizer = make_optimizer(net:parameters())
  for first = 1, 311, 16 do
    local count = math.min(16, 311 - first + 1)
    local own = rank == 0 and (count + 1) // 2 or count // 2
    local at = rank == 0 and first or first + count - own
    local loss = lt.cross_entropy(ddp(x:narrow(1, at, own)), y:narrow(1, at, own))
    ddp:zero_grad()
    ddp:backward(loss, own)
    ddp:sync()
    optimizer:step()
    note(loss, own)
  end
end)
print(table.concat(losses, " "))
]]

-- Runs the script with one of the models; its losses, and the text of its second line.
local function losses_of(script, model)
  local folder = child.folder()
  child.write(folder .. "/script.lua", script)
  local status, out, err = child.run({ "script.lua", model }, { dir = folder })
  child.remove(folder)
  assert.equal(0, status, err)
  local first, second = out:match("^([^\n]*)\n([^\n]*)")
  local list = {}
  for number in first:gmatch("%S+") do list[#list + 1] = tonumber(number) end
  return list, tonumber(second)
end

local function agrees(wanted, got)
  assert.equal(#wanted, #got)
  for i, loss in ipairs(wanted) do
    assert(math.abs(loss - got[i]) <= 1e-4 * loss, ("step %d: PyTorch %.7f, two ranks %.7f"):format(
      i, loss, got[i]))
  end
end

-- The mean over all samples of an epoch, whose last step had fewer.
local function epoch_mean(losses)
  local sum = 0.0
  for i, loss in ipairs(losses) do sum = sum + loss * math.min(BATCH, SAMPLES - (i - 1) * BATCH) end
  return sum / SAMPLES
end

describe("two ranks and PyTorch in one process", function()
  for name, model in pairs { ["an MLP with SGD and momentum"] = "sgd",
    ["an MLP with Adam"] = "adam", ["convolutions with SGD and momentum"] = "conv" } do
    it("lose the same over 20 steps: " .. name, function()
      local losses, logged = losses_of(TRAINER, model)
      agrees(WANTED[model], losses)
      assert.is_true(math.abs(epoch_mean(WANTED[model]) - logged) < 1e-4)
    end)
  end

  it("lose the same when a loop without Trainer shares the gradients", function()
    agrees(WANTED.adam, (losses_of(BY_HAND, "adam")))
  end)
end)
