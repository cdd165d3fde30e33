--- stdlib/dist/ddp.lua: lt.dist.ddp(module): reduces the gradients of a module over the ranks.
--
--   local lt = require "ltrain"
--   lt.dist.launch(2, function(rank)
--     local net = lt.dist.ddp(lt.nn.Linear(3, 1)) -- every rank gets rank 0's weights
--     local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.1})
--     for step = 1, 3 do
--       local x = lt.randn(4 + rank, 3)
--       net:zero_grad()
--       net:backward(net(x):square():mean(), x.shape[1])
--       net:sync()                               -- means over all ranks' samples
--       optimizer:step()
--     end
--     local all = lt.dist.all_gather(net:parameters()[1]:detach())
--     if rank == 0 then print((all[1] - all[2]):abs():max():item()) end
--   end)
--   -- prints: 0.0
--
-- The Trainer calls the same two methods of the object that `configure_ddp` returns.
local Reducer = require "ltrain.dist.Reducer"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local DistributedDataParallel = class.extend(nil, "DistributedDataParallel")

--- What the loop makes: nothing is copied, the module's `backward` runs the walk. Options:
--- bucket_cap_mb, comm_hook.
function DistributedDataParallel:init(module, options)
  self.module = module
  self.reducer = Reducer(options)
  self.weight = 0.0
end

--- module(...)
function DistributedDataParallel:__call(...)
  local y = self.module(...)
  return y
end

--- Accumulates the gradients of `loss` times `weight`: the weight of this rank's loss, its number
--- of samples or their fraction of a batch; 1 by default. Further arguments are passed to the
--- module's backward.
function DistributedDataParallel:backward(loss, weight, ...)
  weight = weight or 1.0
  self.weight = self.weight + weight
  if weight ~= 1 then loss = loss * weight end
  self.module:backward(loss, ...)
end

--- Replaces the gradients by those of the weighted mean of all losses since the last call; every
--- rank must call it, also without data. Returns the sum of the weights: if it is 0, there are no
--- gradients and the optimizer should not step. The loop passes what it knows: `parameters`, the
--- sum of weights and the number of missing gradients over the ranks, and the key of the list.
function DistributedDataParallel:sync(parameters, total, missing, key)
  parameters = parameters or self.module:parameters()
  if not total then
    total, missing = table.unpack(c.dist.add { self.weight, c.dist.missing(parameters) })
  end
  self.weight = 0.0
  if total > 0 then self.reducer:reduce(parameters, total, missing, key or self) end
  return total
end

function DistributedDataParallel:zero_grad()
  self.module:zero_grad()
  return self
end

function DistributedDataParallel:parameters() return self.module:parameters() end

--- An object that reduces gradients over the ranks; parameters and buffers start as rank 0's.
--- Options: bucket_cap_mb (25), comm_hook (a function on a buffer, or "bf16").
local function ddp(module, options)
  if not walk.is_module(module) then
    errors.blame("dist.ddp: needs a module: got %s", errors.show(module))
  end
  local shared = DistributedDataParallel(module, options)
  broadcast_parameters.module(module)
  return shared
end

return { wrap = ddp, class = DistributedDataParallel }
