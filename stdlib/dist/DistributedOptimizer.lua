--- stdlib/dist/DistributedOptimizer.lua: lt.dist.DistributedOptimizer: an optimizer whose step
--- reduces the gradients over the ranks first, for loops of a script's own.
--
--   local lt = require "ltrain"
--   lt.dist.launch(2, function(rank)
--     local net = lt.nn.Linear(3, 1)
--     local optimizer = lt.dist.DistributedOptimizer(lt.optim.SGD(net:parameters(), {lr = 0.1}))
--     lt.dist.broadcast_parameters(net)
--     for step = 1, 3 do
--       optimizer:zero_grad()
--       net(lt.randn(4, 3)):square():mean():backward()
--       optimizer:step()                         -- steps with the mean of all ranks' gradients
--     end
--     local all = lt.dist.all_gather(net.weight:detach())
--     if rank == 0 then print((all[1] - all[2]):abs():max():item()) end
--   end)
--   -- prints: 0.0
--
-- Horovod's: it is the optimizer itself, with further methods. Each rank counts the same: where
-- ranks have different numbers of samples, `lt.dist.ddp` weighs them.
local Adasum = require "ltrain.dist.Adasum"
local Reducer = require "ltrain.dist.Reducer"
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"
local check_optimizer = require "ltrain.dist.check_optimizer"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local horovod_reduction = require "ltrain.dist.horovod_reduction"
local parameters_of = require "ltrain.core.parameters_of"

local WHO <const> = "dist.DistributedOptimizer"

local OPTIONS <const> = {
  backward_passes_per_step = { type = "integer", default = 1, min = 1,
    doc = "no effect: a step reduces what any number of backward passes has added up" },
  named_parameters = { type = "any", doc = "no effect: the optimizer has the names" },
  bucket_cap_mb = { type = "number", default = 25, above = 0,
    doc = "MiB of gradients per message" },
}
for name, row in next, horovod_reduction.rows do OPTIONS[name] = row end

local distributed = { options = OPTIONS }

local methods = {}

--- Replaces the gradients by those of all ranks now, before clipping for example; the step that
--- follows, within `skip_synchronize`, uses them. All ranks must call it.
function methods.synchronize(self)
  local own, parameters = self._distributed, parameters_of(self)
  if self._strategy then
    errors.blame("%s: the Trainer reduces gradients: configure_optimizers returns the optimizer "
      .. "itself, and strategy = {'horovod', op = ...} has these options", WHO)
  elseif own.is_synchronized then
    errors.blame("%s: synchronize was called already in this step: call step within `local _ "
      .. "<close> = optimizer:skip_synchronize()`", WHO)
  end
  own.is_synchronized = true
  if c.dist.size() == 1 then return end
  local missing = c.dist.add { c.dist.missing(parameters) }[1]
  if own.adasum then
    return horovod_reduction.adasum(own.adasum, parameters, { missing = missing, scale = 1,
      cap = own.cap, compression = own.compression })
  end
  local total = own.op == "average" and c.dist.size() or 1
  own.reducer:reduce(parameters, total, missing, own)
end

--- Returns a value to be closed: until then `step` does not reduce gradients.
function methods.skip_synchronize(self)
  local own = self._distributed
  own.skips = true
  return setmetatable({}, { __close = function() own.skips = false end })
end

-- A class below that of an optimizer, of the same name: saved states are the optimizer's.
local function extended(base)
  local new = class.extend(base, base.__name)
  for name, fn in next, methods do new[name] = fn end
  function new.step(self, closure)
    local own, loss = self._distributed, nil
    if closure ~= nil then loss = closure() end
    if not own.skips then self:synchronize() end
    own.is_synchronized = false
    base.step(self)
    return loss
  end
  return new
end

local function make(optimizer, options)
  check_optimizer(optimizer, WHO)
  if optimizer._distributed then errors.blame("%s: the optimizer is one already", WHO) end
  local o = config.check(options, OPTIONS, WHO)
  local own = { op = o.op, compression = o.compression, cap = buckets.bytes(o.bucket_cap_mb) }
  if o.op == "adasum" then
    own.adasum = Adasum(WHO)
  else
    own.reducer = Reducer { bucket_cap_mb = o.bucket_cap_mb, comm_hook = horovod_reduction.hook(o) }
  end
  optimizer._distributed = own
  return setmetatable(optimizer, extended(getmetatable(optimizer)))
end

--- DistributedOptimizer(optimizer, {op = "average", compression = "fp16", ...}): returns the
--- optimizer, whose `step` reduces gradients first. All ranks must call it.
return setmetatable(distributed, { __call = function(_, ...) return make(...) end })
