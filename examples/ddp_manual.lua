-- examples/ddp_manual.lua: training on several processes without a Trainer.
--
--   ltrain examples/ddp_manual.lua 2              on 2 ranks (2 also without the number)
--   ltrain examples/ddp_manual.lua 2 100          no more than 100 batches
--
-- Each rank reads a part of drawn digits; gradients are joined by hand before each optimizer step.
-- Prints the loss of all ranks' samples now and then, and the accuracy on images that were not
-- trained on, which is about 0.9.
local lt = require "ltrain"
local nn, dist = lt.nn, lt.dist

local ranks = math.tointeger(tonumber(arg and arg[1])) or 2
local most = tonumber(arg and arg[2]) or math.huge

local BATCH <const> = 64 -- images of all ranks together

local train, test = lt.data.digits{split = "train"}, lt.data.digits{split = "test"}

-- The mean over all ranks' samples of a value that is the mean of `count` here.
local function mean(value, count)
  local sums = dist.all_reduce(lt.tensor({value * count, count}, {dtype = "f64"}))
  return sums[1]:item() / sums[2]:item()
end

-- Rank r judges images r + 1, r + 1 + ranks, ...: each image once.
local function accuracy(net, rank)
  local mine = {}
  for i = rank + 1, #test, ranks do mine[#mine + 1] = i end
  local accuracy_here = lt.metrics.Accuracy()
  lt.no_grad(function()
    local own = lt.data.DataLoader(test, {batch_size = 250, sampler = mine})
    for batch in own:batches() do accuracy_here:update(net(batch[1]), batch[2]) end
  end)
  return mean(accuracy_here:compute(), #mine)
end

-- What every rank runs.
local function run(rank)
  lt.seed(1) -- the order of the images is the same on all ranks
  local net = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
  local ddp = dist.ddp(net) -- from here on weights are rank 0's
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 3e-3})
  local loader = lt.data.DataLoader(train, {
    batch_size = BATCH // ranks, sampler = lt.data.DistributedSampler{dataset = train},
  })

  local steps = 0
  for batch in loader:batches() do
    local x, y = batch[1], batch[2]
    local loss = lt.cross_entropy(ddp(x), y)
    ddp:zero_grad()
    ddp:backward(loss, #x)   -- counts with the samples that it is the mean of
    ddp:sync()               -- gradients: those of all ranks' samples
    optimizer:step()

    steps = steps + 1
    local last = steps >= most
    if steps % 50 == 0 or last then
      local of_all = mean(loss:item(), #x)
      if rank == 0 then print(("step %d: loss %.4f"):format(steps, of_all)) end
    end
    if last then break end
  end
  return accuracy(net, rank), steps
end

-- Forks the other ranks, which are gone afterwards; those of mpirun are there before and after.
local result, steps = dist.launch(ranks, run)
if dist.rank() == 0 then
  print(("ranks %d, steps %d, accuracy %.3f"):format(ranks, steps, result))
end
