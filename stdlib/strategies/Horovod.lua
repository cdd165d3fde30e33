--- stdlib/strategies/Horovod.lua: DDP with the options of Horovod's DistributedOptimizer.
--
-- Ranks are forked when fit starts, or started by mpirun. "average" is the mean over the samples of
-- all ranks, as in DDP; "sum" is that times the number of ranks; "adasum" combines the mean
-- gradients of the ranks (dist/Adasum.lua). The learning rate is the script's: with "average"
-- Horovod's examples multiply it by `hvd.size()`.
local DDP = require "ltrain.strategies.DDP"
local buckets = require "ltrain.dist.buckets"
local ddp = require "ltrain.dist.ddp"
local errors = require "ltrain.core.errors"
local foreign_options = require "ltrain.strategies.foreign_options"
local horovod_reduction = require "ltrain.dist.horovod_reduction"
local parameters_of = require "ltrain.core.parameters_of"
local rank_options = require "ltrain.strategies.rank_options"

local Horovod = DDP:extend("Horovod")

local refused, unneeded = foreign_options.refused, foreign_options.unneeded
local HERE <const> = "strategies.Horovod"

local OWN <const> = {
  backward_passes_per_step = refused "write accumulate_grad_batches = N in the Trainer",
  named_parameters = unneeded("any", "parameters have the names of the module"),
}
for name, row in next, horovod_reduction.rows do OWN[name] = row end

--- Its options.
Horovod.options = rank_options.rows(OWN)

-- Replaces the gradients by the adasum of the mean gradients of all ranks.
local function reduce_by_adasum(self, optimizer, total, missing, weight)
  if not self.adasum then return DDP.reduce_gradients(self, optimizer, total, missing, weight) end
  horovod_reduction.adasum(self.adasum, parameters_of(optimizer), {
    missing = missing, cap = buckets.bytes(self.bucket_cap_mb),
    scale = weight > 0 and 1.0 / weight or 1, compression = self.reduction.compression,
  })
end

--- Horovod{op = "average", compression = "fp16", ...}
function Horovod:init(options)
  local o, notes = foreign_options.check(options, Horovod.options, HERE)
  if o.op == "adasum" and (o.hierarchical or o.gradient_predivide_factor ~= 1) then
    errors.blame("%s: op = 'adasum' has its own order of ranks and no division: remove %s", HERE,
      o.hierarchical and "hierarchical" or "gradient_predivide_factor")
  end
  self.notes, self.reduction = notes, {}
  for name in next, horovod_reduction.rows do self.reduction[name] = o[name] end
  self.op = o.op
  if o.op == "adasum" then self.reduce_gradients = reduce_by_adasum end
  rank_options.take(self, o)
  self:note_world()
end

--- Rejects deterministic = "world" where gradients depend on the number of ranks.
function Horovod:setup(trainer)
  if trainer.options.deterministic == "world" and self.op ~= "average" then
    errors.blame("%s: deterministic = 'world' needs results that do not depend on the number of "
      .. "ranks, and with op = '%s' they do: remove one of them", HERE, self.op)
  end
  DDP.setup(self, trainer)
end

--- Reduces gradients as the options say.
function Horovod:configure_ddp(module)
  return ddp.class(module, { bucket_cap_mb = self.bucket_cap_mb,
    comm_hook = horovod_reduction.hook(self.reduction) })
end

--- Creates what reduces gradients during fit.
function Horovod:setup_module(module)
  if self.op ~= "adasum" then return DDP.setup_module(self, module) end
  self.ddp, self.steps, self.adasum = nil, nil, nil
  if self.world_size > 1 and module.trainer.state.fn == "fit" then
    if module.configure_ddp then
      errors.blame("%s: op = 'adasum' does not use configure_ddp of the module: remove it", HERE)
    end
    self.adasum = horovod_reduction.Adasum(HERE)
  end
  return module
end

--- The gradients of a loss that counts once for each rank with "sum".
function Horovod:backward(loss, weight, ...)
  if self.op == "sum" then weight = weight * self.world_size end
  DDP.backward(self, loss, weight, ...)
end

return Horovod
