--- stdlib/parallel/AttentionParallel.lua: each rank computes some heads of an attention module.
--
-- An nn.MultiheadAttention is divided whole: its projections too. Of another module the fields are
-- divided that count its heads (`heads`); its projections have styles of their own, ColwiseParallel
-- with sum_gradients = false for queries, keys and values, and RowwiseParallel behind the heads.
-- Its field `head_range`, { from =, of = }, then says which heads of how many it has, for
-- nn.scaled_attention, whose dropout is that of one rank.
local MultiheadAttention = require "ltrain.nn.MultiheadAttention"
local ParallelStyle = require "ltrain.parallel.ParallelStyle"
local RowwiseParallel = require "ltrain.parallel.RowwiseParallel"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local layouts = require "ltrain.parallel.layouts"
local transitions = require "ltrain.parallel.transitions"

local AttentionParallel = ParallelStyle:extend("AttentionParallel")

--- Its options.
AttentionParallel.options = {
  heads = { type = "table", default = { "num_heads" },
    doc = "the fields of the module that count its heads" },
  input_layouts = layouts.row(layouts.Replicate(), "of the arguments that are tensors of 3 dims"),
  output_layouts = layouts.row(layouts.Replicate(), "of the output of an nn.MultiheadAttention"),
  use_local_output = ParallelStyle.USE_LOCAL_OUTPUT,
}

local function is_whole_module(module) return class.is_a(module, MultiheadAttention) end

--- Of an nn.MultiheadAttention its weights.
function AttentionParallel:cuts(module, site)
  for _, field in ipairs(self.heads) do
    local count = module[field]
    if math.type(count) ~= "integer" then
      errors.blame("parallelize: %s: AttentionParallel: %s has no number of heads '%s': name its "
        .. "fields, heads = {...}", site.name, errors.show(module), field)
    end
    self.check_size(site, "%d heads (" .. field .. ")", count)
  end
  local rows = { dim = 1, blocks = 1 }
  if not is_whole_module(module) then return {} end
  return { in_proj_weight = module.in_proj_weight and { dim = 1, blocks = 3 },
    in_proj_bias = module.in_proj_bias and { dim = 1, blocks = 3 },
    q_proj_weight = module.q_proj_weight and rows, k_proj_weight = module.k_proj_weight and rows,
    v_proj_weight = module.v_proj_weight and rows }
end

--- The styles of modules in it: { field = style }.
function AttentionParallel:inner(module)
  if not is_whole_module(module) then return {} end
  return { out_proj = RowwiseParallel { output_layouts = self.output_layouts } }
end

function AttentionParallel:apply(module, site)
  local group, ranks = site.group, site.group:world_size()
  for i, field in ipairs(self.heads) do
    local each = module[field] // ranks
    if i == 1 then
      site.set(module, "head_range", { from = group:rank() * each, of = each * ranks })
    end
    site.set(module, field, each)
  end
  local has_mean = is_whole_module(module)
  site.wrap(module, function(forward, own, ...)
    local args, known = table.pack(...), {}
    for i = 1, args.n do
      local x = args[i]
      if c.is_tensor(x) and x.ndim == 3 then
        known[x] = known[x] or transitions.enter(x, self.input_layouts, group)
        args[i] = known[x]
      end
    end
    local results = table.pack(forward(own, table.unpack(args, 1, args.n)))
    if has_mean and results.n == 2 then -- attention weights, the mean of this rank's heads
      results[2] = transitions.reduce(results[2], group) / ranks
    end
    return table.unpack(results, 1, results.n)
  end)
end

return AttentionParallel
