--- stdlib/dist/hooks/TopK.lua: sends the largest elements of a gradient with their places (Stich,
--- Cordonnier, Jaggi 2018; Lin et al. 2018).
--
-- Each rank picks its own k elements, the largest by magnitude of its gradient and residual; the
-- ranks gather all of them, k values and k places (i32) of each, and add them in the order of the
-- ranks.
local Hook = require "ltrain.dist.hooks.Hook"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"

local TopK = Hook:extend("TopK")

TopK.name = "topk"

TopK.options = Hook.rows {
  ratio = { type = "number", default = 0.01, above = 0, max = 1,
    doc = "part of the elements that each rank sends" },
}

function TopK:compress(x, _, group)
  local n = x:numel()
  local k = math.max(math.ceil(self.ratio * n), 1)
  local _, index = c.topk(x:abs(), k, { sorted = false })
  -- NaN, if an element is not finite: the values of this rank say so to the others.
  local values = self:rounded(x:index_select(1, index) + (x * 0):sum())
  local of_index = collectives.all_gather(index:to "i32", { group = group, async = true })
  local of_values = collectives.all_gather(values, { group = group, async = true })
  local left
  if self.error_feedback then
    left = x:clone()
    left:scatter_(1, index, -values:to(x.dtype), { reduce = "add" })
  end
  of_index, of_values = of_index:wait():to "i64", of_values:wait():to(x.dtype)
  x:zero_()
  for rank = 1, self.ranks_of(group) do
    x:scatter_(1, of_index[rank], of_values[rank], { reduce = "add" })
  end
  return left
end

return TopK
