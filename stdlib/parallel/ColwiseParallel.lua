--- stdlib/parallel/ColwiseParallel.lua: each rank computes some of a linear layer's outputs, or of
--- the features of an embedding.
local ParallelStyle = require "ltrain.parallel.ParallelStyle"
local cuts = require "ltrain.core.cuts"
local layouts = require "ltrain.parallel.layouts"
local matrices = require "ltrain.parallel.matrices"
local transitions = require "ltrain.parallel.transitions"

local ColwiseParallel = ParallelStyle:extend("ColwiseParallel")

local LAST <const> = layouts.Shard(-1)

--- Its options.
ColwiseParallel.options = {
  input_layouts = layouts.row(layouts.Replicate(), "of the input"),
  output_layouts = layouts.row(LAST, "of the output"),
  blocks = { type = "integer", default = 1, min = 1,
    doc = "the outputs are so many blocks, each divided for itself: 3 where queries, keys and "
      .. "values are one matrix" },
  sum_gradients = { type = "boolean", default = true,
    doc = "add up the gradients of the input over the ranks; false where a style of a module "
      .. "around it does, once for several layers" },
  use_local_output = ParallelStyle.USE_LOCAL_OUTPUT,
}

--- The weight and the bias, by outputs.
function ColwiseParallel:cuts(module, site)
  if matrices.is_embedding(module) then
    self.check_parts(site, "%d features", module.weight.shape[2], self.blocks)
    return { weight = { dim = 2, blocks = self.blocks } }
  end
  local outputs = matrices.dims(module)
  if not outputs then self:refuse(module, site, "linear layers and embeddings") end
  self.check_parts(site, "%d outputs", module.weight.shape[outputs], self.blocks)
  return { weight = { dim = outputs, blocks = self.blocks },
    bias = module.bias and { dim = 1, blocks = self.blocks } }
end

function ColwiseParallel:apply(module, site)
  local group, shape = site.group, cuts.shape(module.weight)
  local outputs, inputs = matrices.dims(module)
  if not outputs then outputs = 2 end -- of an embedding
  site.wrap(module, function(forward, own, x, ...)
    local from = self.input_layouts
    if self.sum_gradients or from.kind == "shard" then
      x = transitions.enter(x, from, group, shape[inputs])
    end
    local y = forward(own, x, ...)
    return transitions.change(y, LAST, self.output_layouts, group, shape[outputs])
  end)
end

return ColwiseParallel
