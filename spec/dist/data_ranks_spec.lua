-- spec/dist/data_ranks_spec.lua: ranks that read the same samples: fits, metrics and files on 4
-- ranks of which two and two make one replica are those of 2 ranks.
-- tags: slow
local trained = require "spec.dist.trained"

local scripts <const> = trained.with [[
local DDP = require "ltrain.strategies.DDP"
local data_ranks = require "ltrain.dist.data_ranks"
local Pairs = DDP:extend "Pairs"
function Pairs:setup_mesh()
  local mesh = lt.dist.mesh({2, 2}, {"data", "model"})
  return data_ranks.use(mesh, {"data"}, {"data"})
end
local Net = lt.Module:extend "Net"
function Net:init()
  lt.seed(3)
  self.layer, self.drop = lt.nn.Linear(3, 2), lt.nn.Dropout(0.3)
  self.acc = lt.metrics.Mean()
end
function Net:training_step(batch)
  local y = self.layer(self.drop(batch[1]))
  local loss = lt.mse_loss(y, batch[2])
  self:log("loss", loss, {on_epoch = true, on_step = true, sync_dist = true})
  self:log("first", batch[1]:sum(), {reduce_fx = "sum", on_epoch = true, on_step = false,
    sync_dist = true})
  return loss
end
function Net:validation_step(batch)
  -- as in a pipeline: one rank of a replica has the metric's samples
  local world = lt.dist.world_size()
  if world < 4 or lt.dist.rank() % 2 == 1 then self.acc:update(self.layer(batch[1])) end
  if world < 4 or lt.dist.rank() % 2 == 1 then self:log("last", batch[2]:mean()) end
end
function Net:on_validation_epoch_end() self.mean = self.acc:compute() self.acc:reset() end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.05}) end
lt.seed(1)
local x = lt.randn(22, 3)
local data = lt.data.TensorDataset(x, x:narrow(2, 1, 2) * 2)
local function loader() return lt.data.DataLoader(data, {batch_size = 4, shuffle = true}) end
local function fit(o)
  local net, t = Net(), trainer(o)
  t:fit(net, loader(), loader())
  return net, t
end
local function line(t)
  local parts = {}
  for name, value in pairs(t) do parts[#parts + 1] = ("%s=%.9g"):format(name, value) end
  table.sort(parts)
  return table.concat(parts, " ")
end
]]

local FIT <const> = [[
local net, t = fit {devices = n, max_epochs = 2, strategy = n == 4 and Pairs() or "ddp",
  gradient_clip_val = 0.5, accumulate_grad_batches = 2}
print(line(t.callback_metrics), net.mean, t.global_step, net.layer.weight)
]]

describe("ranks that read the same samples", function()
  it("train, clip, draw and log as half as many that read their own", function()
    local wanted = scripts.output(2, FIT)
    assert.matches("last=", wanted)
    assert.equal(wanted, (scripts.output(4, FIT)))
  end)

  it("save in mid-epoch what half as many resume", function()
    local text = [[
      local path = "half.ckpt"
      local Stop = lt.Callback:extend "Stop"
      Stop.all_ranks = true
      function Stop:on_train_batch_end(t, module, outputs, batch, i)
        if i == 1 then t:save_checkpoint(path) t.should_stop = true end
      end
      fit {devices = n, strategy = n == 4 and Pairs() or "ddp", callbacks = {Stop()},
        accumulate_grad_batches = 1}
      local net, t = Net(), trainer {devices = 2, strategy = "ddp"}
      t:fit(net, loader(), loader(), {ckpt_path = path})
      print(line(t.callback_metrics), net.mean, net.layer.weight)
    ]]
    assert.equal((scripts.output(2, text)), (scripts.output(4, text)))
  end)

  it("predict each batch once for each replica", function()
    local text = [[
      local net = Net()
      function net:predict_step(batch) return batch[1]:sum():item() end
      local t = trainer {devices = n, strategy = n == 4 and Pairs() or "ddp"}
      local sum, count = 0, 0
      for _, value in ipairs(t:predict(net, lt.data.DataLoader(data, {batch_size = 4}))) do
        sum, count = sum + value, count + 1
      end
      print(count, ("%.5f"):format(sum))
    ]]
    assert.equal((scripts.output(2, text)), (scripts.output(4, text)))
  end)
end)
