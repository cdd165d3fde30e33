--- stdlib/parallel/RowwiseParallel.lua: each rank computes with some of a linear layer's inputs, or
--- with some rows of an embedding, those of some ids; what the ranks get is added up.
local ParallelStyle = require "ltrain.parallel.ParallelStyle"
local c = require "ltrain.c"
local cuts = require "ltrain.core.cuts"
local layouts = require "ltrain.parallel.layouts"
local matrices = require "ltrain.parallel.matrices"
local transitions = require "ltrain.parallel.transitions"

local RowwiseParallel = ParallelStyle:extend("RowwiseParallel")

local LAST <const> = layouts.Shard(-1)

--- Its options.
RowwiseParallel.options = {
  input_layouts = layouts.row(nil, "of the input; by default Shard(-1), of an embedding "
    .. "Replicate()"),
  output_layouts = layouts.row(layouts.Replicate(), "of the output"),
  use_local_output = ParallelStyle.USE_LOCAL_OUTPUT,
}

--- The weight, by inputs.
function RowwiseParallel:cuts(module, site)
  if matrices.is_embedding(module) then
    self.check_parts(site, "%d ids", module.weight.shape[1])
    return { weight = { dim = 1, blocks = 1 } }
  end
  local _, inputs = matrices.dims(module)
  if not inputs then self:refuse(module, site, "linear layers and embeddings") end
  self.check_parts(site, "%d inputs", module.weight.shape[inputs])
  return { weight = { dim = inputs, blocks = 1 } }
end

-- The bias as it is added to an output in a layout: once, and where each rank has a part of the
-- rows its gradients are summed.
local function bias_for(bias, to, group, ndim)
  if layouts.equal(to, LAST, ndim) then
    return transitions.split(bias, group, 1, bias.shape[1])
  end
  return to.kind == "shard" and transitions.copy(bias, group) or bias
end

-- What a layer gives without its bias.
local function without_bias(module, forward, ...)
  local bias = module.bias
  local _ <close> = setmetatable({}, { __close = function() rawset(module, "bias", bias) end })
  rawset(module, "bias", nil)
  local y = forward(module, ...)
  return y
end

local function apply_linear(self, module, site)
  local group, to, shape = site.group, self.output_layouts, cuts.shape(module.weight)
  local outputs, inputs = matrices.dims(module)
  site.wrap(module, function(forward, own, x, ...)
    x = transitions.change(x, self.input_layouts or LAST, LAST, group, shape[inputs])
    local bias = own.bias
    local y = transitions.sum_to(without_bias(own, forward, x, ...), to, group, shape[outputs])
    if not bias then return y end
    return y + bias_for(bias, to, group, y.ndim):to(y.dtype)
  end)
end

-- Ids of other ranks' rows are looked up as row 0, and give zeros. Those of no rank stay wrong.
local function apply_embedding(self, module, site)
  local group, to = site.group, self.output_layouts
  local count = module.num_embeddings
  local first, own_count = cuts.place(count, group:world_size(), group:rank())
  site.wrap(module, function(_, own, ids)
    ids = transitions.change(ids, self.input_layouts or layouts.Replicate(), layouts.Replicate(),
      group)
    local is_other = ids:lt(first):logical_or(ids:ge(first + own_count))
      :logical_and(ids:ge(0)):logical_and(ids:lt(count))
    local padding = own.padding_idx and own.padding_idx - first
    if padding and (padding < 0 or padding >= own_count) then padding = nil end
    local rows = c.embedding(own.weight, (ids - first):masked_fill(is_other, 0), padding)
    return transitions.sum_to(rows:masked_fill(is_other:unsqueeze(-1), 0), to, group)
  end)
end

function RowwiseParallel:apply(module, site)
  local apply = matrices.is_embedding(module) and apply_embedding or apply_linear
  apply(self, module, site)
end

return RowwiseParallel
