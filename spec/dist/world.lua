-- spec/dist/world.lua: a fit whose weights must not depend on the ranks, for specs.

-- A net with all that could make a difference: convolution, batch norm, dropout on a view of
-- [B * rows, C], a batch at the end that is short. Prints nothing; writes its weights.
-- Arguments: ranks, accumulated batches, megabytes of a bucket, a file.
local SCRIPT <const> = [[
local ranks, window, megabytes, file = table.unpack(arg)
lt.seed(3)
local Net = lt.Module:extend("Net")
function Net:init()
  self.conv, self.norm = lt.nn.Conv2d(1, 4, 3), lt.nn.BatchNorm2d(4)
  self.drop, self.head = lt.nn.Dropout(0.3), lt.nn.Linear(16, 2)
end
function Net:forward(x)
  local hidden = self.norm(self.conv(x)):relu()
  local rows = self.drop(hidden:reshape{x.shape[1] * 4, 4})
  return self.head((rows:reshape{x.shape[1], 16}))
end
function Net:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("loss", loss, {on_epoch = true})
  return loss
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-2}) end
local x = lt.randn(75, 1, 4, 4)
local data = lt.data.TensorDataset(x, x:sum({2, 3, 4}):gt(0):to("i64"))
local t = lt.Trainer{devices = ranks, max_epochs = 2, deterministic = "world",
  accumulate_grad_batches = window, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false,
  strategy = ranks > 1 and lt.strategies.DDP{bucket_cap_mb = megabytes} or "auto"}
local net = Net()
t:fit(net, lt.data.DataLoader(data, {global_batch_size = 16, shuffle = true}))
if lt.dist.rank() == 0 then lt.save(file, net:state_dict()) end
]]

--- The script with its arguments.
return function(ranks, window, megabytes, file)
  return ("arg = {%d, %d, %g, %q}\n"):format(ranks, window, megabytes, file) .. SCRIPT
end
