-- examples/horovod.lua: a loop of one's own with Horovod's names.
--
--   ltrain examples/horovod.lua                          one rank
--   mpirun -n 2 ltrain examples/horovod.lua              two ranks
--   ltrain examples/horovod.lua 100                      no more than 100 batches on each
--
-- Each rank reads a part of drawn digits. Prints the loss of all ranks now and then, and the
-- accuracy on images that were not trained on, which is about 0.9.
local lt = require "ltrain"
local nn, hvd = lt.nn, lt.horovod

local most = tonumber(arg and arg[1]) or math.huge

hvd.init()
lt.seed(1 + hvd.rank())
local train, test = lt.data.digits{split = "train"}, lt.data.digits{split = "test"}
local loader = lt.data.DataLoader(train, {
  batch_size = 64 // hvd.size(),
  sampler = lt.data.DistributedSampler{dataset = train, drop_last = true}, drop_last = true,
})

local net = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
local optimizer = hvd.DistributedOptimizer(lt.optim.Adam(net:parameters(), {lr = 3e-3}),
  {op = hvd.Average, compression = hvd.Compression.fp16})
hvd.broadcast_parameters(net:state_dict(), 0)
hvd.broadcast_optimizer_state(optimizer, 0)

local steps = 0
for batch in loader:batches() do
  optimizer:zero_grad()
  local loss = lt.cross_entropy(net(batch[1]), batch[2])
  loss:backward()
  optimizer:step() -- with the mean of all ranks' gradients

  steps = steps + 1
  if steps % 50 == 0 or steps >= most then
    local mean = hvd.allreduce(loss:detach(), {name = "loss"})
    if hvd.rank() == 0 then print(("step %d: loss %.4f"):format(steps, mean:item())) end
  end
  if steps >= most then break end
end

local accuracy = lt.metrics.Accuracy()
lt.no_grad(function()
  for batch in lt.data.DataLoader(test, {batch_size = 250}):batches() do
    accuracy:update(net(batch[1]), batch[2])
  end
end)
if hvd.rank() == 0 then
  print(("ranks %d, steps %d, accuracy %.3f"):format(hvd.size(), steps,
    accuracy:compute{sync = false}))
end
