--- stdlib/strategies/local_sgd/averaging.lua: averages tensors over the ranks.
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"

local averaging = {}

--- Returns the parameters of a list that are in the `set` of any rank. The others are equal on all
--- ranks, and averaging, which rounds, could change them. Called on all ranks.
function averaging.in_some(parameters, set)
  local own, list = {}, {}
  for i, parameter in ipairs(parameters) do own[i] = set[parameter] and 1 or 0 end
  for i, count in ipairs(buckets.counts(own)) do
    if count > 0 then list[#list + 1] = parameters[i] end
  end
  return list
end

--- Averages tensors over the ranks, in place: the reducer, which reduces gradients, gets them as
--- gradients.
function averaging.average(reducer, tensors)
  local holders = {}
  local _ <close> = c.no_grad()
  local _ <close> = c.allow_update()
  for i, tensor in ipairs(tensors) do
    holders[i] = tensor:detach()
    holders[i].grad = tensor:detach()
  end
  reducer:reduce(holders, c.dist.size(), 0)
end

--- Copies of tensors.
function averaging.copies_of(list)
  local copies = {}
  for i, tensor in ipairs(list) do copies[i] = tensor:detach():clone() end
  return copies
end

--- Copies values into tensors.
function averaging.write(list, values)
  local _ <close> = c.allow_update()
  for i, tensor in ipairs(list) do tensor:copy_(values[i]) end
end

return averaging
