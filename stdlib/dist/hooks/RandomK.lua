--- stdlib/dist/hooks/RandomK.lua: sends random elements of a gradient, the same of all ranks
--- (Stich, Cordonnier, Jaggi 2018).
--
-- All ranks draw the same places, so that values alone are sent, and added by one all_reduce. They
-- are not multiplied by n / k: what is not sent comes later, by error feedback.
local Hook = require "ltrain.dist.hooks.Hook"
local c = require "ltrain.c"

local RandomK = Hook:extend("RandomK")

RandomK.name = "random_k"

RandomK.options = Hook.rows {
  ratio = { type = "number", default = 0.01, above = 0, max = 1,
    doc = "part of the elements that are sent" },
  seed = { type = "integer", default = 0, min = 0, doc = "seed of the places" },
}

function RandomK:compress(x, bucket, group)
  local n = x:numel()
  local k = math.max(math.ceil(self.ratio * n), 1)
  local index = self.draw(self.seed, bucket.step, function()
    return c.randperm(n, { device = x.device }):narrow(1, 1, k)
  end)
  -- NaN, if an element is not finite: also of those that are not sent.
  local values = self:rounded(x:index_select(1, index) + (x * 0):sum()):to(x.dtype)
  local left
  if self.error_feedback then
    left = x:clone()
    left:scatter_(1, index, -values, { reduce = "add" })
  end
  self:all_reduce_(values, group)
  x:zero_()
  x:scatter_(1, index, values)
  return left
end

return RandomK
