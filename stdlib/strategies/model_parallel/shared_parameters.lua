--- stdlib/strategies/model_parallel/shared_parameters.lua: makes the parameters of a module the
--- same on all ranks that have them: those that are cut, on the ranks with the same parts.
local PartReducer = require "ltrain.dist.PartReducer"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local cuts = require "ltrain.core.cuts"
local data_ranks = require "ltrain.dist.data_ranks"
local walk = require "ltrain.core.walk"

local shared_parameters = {}

-- The ranks that have the same part of a parameter that is cut.
local function group_of(parameter, same_experts)
  return PartReducer.is_part(parameter) and same_experts or data_ranks.group()
end

--- Gives one parameter to the ranks that have it. `same_experts`: those that have an expert.
function shared_parameters.share(parameter, same_experts)
  broadcast_parameters.tensors({ parameter },
    cuts.of(parameter) and group_of(parameter, same_experts) or nil)
end

--- Gives all ranks the first one's parameters and buffers, but parameters of the set `shared`,
--- which are the same already. Returns whether parameters are cut. All ranks call it.
function shared_parameters.share_all(module, same_experts, shared)
  local lists, skips = { {}, {} }, {} -- parts of matrices, and experts
  for parameter in next, shared do skips[parameter] = true end
  local has_cuts = false
  for _, item in ipairs((walk.tensors(module))) do
    local parameter = item.value
    if cuts.of(parameter) then
      has_cuts = true
      local list = lists[PartReducer.is_part(parameter) and 2 or 1]
      if not shared[parameter] then list[#list + 1] = parameter end
      skips[parameter] = true
    end
  end
  broadcast_parameters.module(module, skips)
  for _, list in ipairs(lists) do
    if #list > 0 then broadcast_parameters.tensors(list, group_of(list[1], same_experts)) end
  end
  return has_cuts
end

return shared_parameters
