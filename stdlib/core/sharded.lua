--- stdlib/core/sharded.lua: parameters whose gradients are in shards now, one on each rank.
--
-- From the reduction to the step a rank has the gradients of its slices alone, and the parameters
-- have none: what asks these would find nothing, and do nothing.

-- Objects with `cuts`, a table by parameter: dist/Shards.
local open = setmetatable({}, { __mode = "k" })

local sharded = {}

--- Gradients are (or are not any more) in the shards of `shards`.
function sharded.set(shards, are) open[shards] = are or nil end

--- Whether the gradient of a parameter is in shards.
function sharded.has(parameter)
  for shards in next, open do
    if shards.cuts[parameter] then return true end
  end
  return false
end

return sharded
