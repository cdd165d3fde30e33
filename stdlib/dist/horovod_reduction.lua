--- stdlib/dist/horovod_reduction.lua: how Horovod's DistributedOptimizer reduces gradients: its
--- options, and what they do with a row of gradients.
local Adasum = require "ltrain.dist.Adasum"
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"

local horovod_reduction = {}

--- Rows of options, for config.check.
horovod_reduction.rows = {
  op = { type = "string", default = "average", choices = { "average", "sum", "adasum" },
    doc = "'average' or 'sum' of the ranks' gradients, or 'adasum', which is the sum of orthogonal "
      .. "gradients and the mean of equal ones" },
  compression = { type = "string", default = "none", choices = { "none", "fp16", "bf16" },
    doc = "the dtype that gradients are sent in: 'none': their own, 'fp16' or 'bf16'" },
  gradient_predivide_factor = { type = "number", default = 1.0, above = 0,
    doc = "gradients are divided by it before they are summed, and multiplied after: a larger one "
      .. "keeps sums in fp16 from overflowing" },
  hierarchical = { type = "boolean", default = false,
    doc = "sum within each machine, then between machines, of which each sends one sum" },
}

local WIRES <const> = { fp16 = "f16", bf16 = "bf16" }

-- The groups of a sum in two steps: of this machine, and of the first ranks of all machines (nil on
-- the others). All ranks call it.
local function levels()
  local world = c.dist.world()
  local machine = collectives.split(world.node_rank)
  return { machine = machine, between = collectives.split(machine:rank() == 0 and 0 or -1) }
end

-- The sum of a row over all ranks, in place.
local function sum_in(row, of)
  if not of then return collectives.all_reduce_(row) end
  of.machine:all_reduce_(row)
  if of.between then of.between:all_reduce_(row) end
  return of.machine:broadcast(row, { out = row })
end

--- Returns fn(row), which returns the sum of all ranks' rows [n] as the checked options say (a
--- Reducer's comm_hook); nil where they ask for nothing else than the sum. All ranks call both.
function horovod_reduction.hook(o)
  local wire, factor = WIRES[o.compression], o.gradient_predivide_factor
  if not wire and factor == 1 and not o.hierarchical then return nil end
  local of = o.hierarchical and levels() or nil
  return function(row)
    local sent = factor ~= 1 and row / factor or row
    if wire then sent = sent:to(wire) end
    sent = sum_in(sent, of):to(row.dtype)
    return factor ~= 1 and sent * factor or sent
  end
end

--- Replaces gradients by their adasum over all ranks, which all call it. `missing`: how many are
--- nil, over all ranks; `scale`: what this rank's are multiplied by first; `cap`: bytes of a
--- message.
function horovod_reduction.adasum(adasum, parameters, o)
  local _ <close> = c.no_grad()
  for _, bucket in ipairs(buckets.split(parameters, buckets.used(parameters, o.missing), o.cap)) do
    local row = c.zeros({ bucket.count },
      { dtype = bucket.dtype, device = bucket.parameters[1].device })
    c.dist.pack(bucket.parameters, row)
    if o.scale ~= 1 then row:mul_(o.scale) end
    if WIRES[o.compression] then row = row:to(WIRES[o.compression]) end
    local sizes, at = {}, 1
    for i, parameter in ipairs(bucket.parameters) do sizes[i] = parameter:numel() end
    row = adasum:combine(row, sizes):to(bucket.dtype)
    for i, parameter in ipairs(bucket.parameters) do
      parameter.grad = row:narrow(1, at, sizes[i]):reshape(parameter.shape)
      at = at + sizes[i]
    end
  end
end

--- An Adasum of all ranks.
horovod_reduction.Adasum = Adasum

return horovod_reduction
