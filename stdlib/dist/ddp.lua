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
-- Gradients are reduced while backward runs, as in PyTorch: calls of backward before the last one
-- of a step go within `local _ <close> = net:no_sync()`. The Trainer calls `backward` and `sync` of
-- the object that `configure_ddp` returns.
local PartReducer = require "ltrain.dist.PartReducer"
local Reducer = require "ltrain.dist.Reducer"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local DistributedDataParallel = class.extend(nil, "DistributedDataParallel")

--- What the loop makes: nothing is copied, the module's `backward` runs the walk. Options:
--- those of a Reducer.
function DistributedDataParallel:init(module, options)
  self.module = module
  local parameters = module:parameters()
  local has_parts = PartReducer.is_needed(parameters)
  self.reducer = (has_parts and PartReducer or Reducer)(options)
  if has_parts then self.reducer:check(parameters) end
  self.weight = 0.0
  self.overlaps = false -- whether backward begins to reduce gradients
  self.is_begun = false -- it has, and sync has not been called since
end

--- module(...)
function DistributedDataParallel:__call(...)
  local y = self.module(...)
  return y
end

-- Reduces the gradients of the backward that comes while it runs.
local function begin(self)
  if self.is_begun then
    errors.blame("dist.ddp: backward: the gradients of the call before are being reduced: call "
      .. "sync() after the last backward of a step, and those before it within `local _ <close> = "
      .. "net:no_sync()`")
  end
  self.is_begun = true
  local overlap = self.reducer:expect(self.module:parameters(), self.weight, self)
  return overlap and overlap:begin()
end

--- Accumulates the gradients of `loss` times `weight`: the weight of this rank's loss, its number
--- of samples or their fraction of a batch; 1 by default. Further arguments are passed to the
--- module's backward. Outside of no_sync() it is the last before sync(): gradients are being
--- reduced from then on, and must not be used before that.
function DistributedDataParallel:backward(loss, weight, ...)
  weight = weight or 1.0
  self.weight = self.weight + weight
  if weight ~= 1 then loss = loss * weight end
  local _ <close> = self.overlaps and begin(self) or nil
  self.module:backward(loss, ...)
end

local function restore(scope) scope.of.overlaps = scope.before end
local SCOPE <const> = { __close = restore }

--- Returns a value to be closed: until then `backward` accumulates this rank's gradients alone.
function DistributedDataParallel:no_sync()
  local scope = setmetatable({ of = self, before = self.overlaps }, SCOPE)
  self.overlaps = false
  return scope
end

-- What all ranks' gradients are of, and how many are nil. Without a hook they are reduced then.
local function agree(self, parameters)
  if not self.reducer:can_overlap() then
    return table.unpack(self.reducer:add { self.weight, c.dist.missing(parameters) })
  end
  local total, missing = self.reducer:finish(parameters, self.weight, self)
  return total, self.reducer:add { missing }[1]
end

--- Replaces the gradients by those of the weighted mean of all losses since the last call; every
--- rank must call it, also without data. Returns the sum of the weights: if it is 0, there are no
--- gradients and the optimizer should not step. The loop passes what it knows: `parameters`, the
--- sum of weights and the number of missing gradients over the ranks, and the key of the list.
function DistributedDataParallel:sync(parameters, total, missing, key)
  local is_reduced = not total and self.reducer:can_overlap()
  parameters = parameters or self.module:parameters()
  if not total then total, missing = agree(self, parameters) end
  self.weight, self.is_begun = 0.0, false
  if is_reduced then
    if missing > 0 and total > 0 then self.reducer:drop_unused(self) end
  elseif total > 0 then
    self.reducer:reduce(parameters, total, missing, key or self)
  end
  return total
end

function DistributedDataParallel:zero_grad()
  self.module:zero_grad()
  return self
end

function DistributedDataParallel:parameters() return self.module:parameters() end

local for_loop = false

-- make(...), which is configure_ddp: the Trainer, which knows which backward is the last of a step,
-- calls the object that is made.
local function make_for_loop(make, ...)
  local outer = for_loop
  local _ <close> = setmetatable({}, { __close = function() for_loop = outer end })
  for_loop = true
  return (make(...))
end

-- The parameters that ranks have parts of, as a set.
local function parts_of(module)
  local set = {}
  for _, parameter in ipairs(module:parameters()) do
    if PartReducer.is_part(parameter) then set[parameter] = true end
  end
  return set
end

--- An object that reduces gradients over the ranks; parameters and buffers start as rank 0's.
--- Options: bucket_cap_mb (25), comm_hook (a function on a buffer, or a hook of lt.dist.hooks).
local function ddp(module, options)
  if not walk.is_module(module) then
    errors.blame("dist.ddp: needs a module: got %s", errors.show(module))
  end
  local shared = DistributedDataParallel(module, options)
  shared.overlaps = not for_loop and shared.reducer:can_overlap()
  broadcast_parameters.module(module, parts_of(module))
  return shared
end

return { wrap = ddp, class = DistributedDataParallel, make_for_loop = make_for_loop }
