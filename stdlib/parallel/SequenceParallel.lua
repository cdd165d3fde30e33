--- stdlib/parallel/SequenceParallel.lua: a norm or a dropout of which each rank computes some
--- positions (Korthikanti et al., 2022).
--
-- Its parameters are whole on each rank, and their gradients, of some positions each, are added up.
-- Dropout draws the mask of all positions and takes its part, so that the result is that of one
-- rank.
local Dropout = require "ltrain.nn.Dropout"
local ParallelStyle = require "ltrain.parallel.ParallelStyle"
local class = require "ltrain.core.class"
local cuts = require "ltrain.core.cuts"
local part_dropout = require "ltrain.nn.part_dropout"
local transitions = require "ltrain.parallel.transitions"
local walk = require "ltrain.core.walk"

local SequenceParallel = ParallelStyle:extend("SequenceParallel")

--- Its options.
SequenceParallel.options = {
  sequence_dim = { type = "integer", default = 2,
    doc = "the dim of which each rank has a part; -1: the features, for a dropout between a "
      .. "ColwiseParallel and a RowwiseParallel layer" },
  size = { type = "integer", min = 1, doc = "of that dim of the whole, where the last rank's part "
    .. "is smaller than the others'" },
  use_local_output = ParallelStyle.USE_LOCAL_OUTPUT,
}

local function apply_dropout(self, module, site)
  local group = site.group
  site.wrap(module, function(_, own, x)
    if not own.training or own.p == 0 then return x end
    local dim = self.sequence_dim
    if dim < 0 then dim = x.ndim + dim + 1 end
    local size = self.size or group:world_size() * x.shape[dim]
    local from = cuts.place(size, group:world_size(), group:rank())
    return part_dropout(x, own.p, dim, from, size)
  end)
end

-- The parameters stand for copies whose gradients are summed until the result is closed.
local function enter(items, group)
  for _, item in ipairs(items) do
    rawset(item.holder, item.key, transitions.copy(item.value, group))
  end
  return setmetatable({}, { __close = function()
    for _, item in ipairs(items) do rawset(item.holder, item.key, item.value) end
  end })
end

function SequenceParallel:apply(module, site)
  if class.is_a(module, Dropout) then return apply_dropout(self, module, site) end
  local function parameters()
    local items = {}
    for _, item in ipairs((walk.tensors(module))) do
      if not item.buffer then items[#items + 1] = item end
    end
    return items
  end
  site.wrap(module, function(forward, own, ...)
    local _ <close> = enter(parameters(), site.group)
    local results = table.pack(forward(own, ...))
    return table.unpack(results, 1, results.n)
  end)
end

return SequenceParallel
