--- stdlib/strategies/model_parallel/shared_parameters.lua: makes the parameters of a module the
--- same on all ranks that have them: those that are cut, on the ranks with the same parts.
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local cuts = require "ltrain.core.cuts"
local walk = require "ltrain.core.walk"

local shared_parameters = {}

--- Gives one parameter to the ranks that have it. `same_parts`: their group, if it is cut.
function shared_parameters.share(parameter, same_parts)
  broadcast_parameters.tensors({ parameter }, cuts.of(parameter) and same_parts or nil)
end

--- Gives all ranks the first one's parameters and buffers, but parameters of the set `shared`,
--- which are the same already. Returns whether parameters are cut. All ranks call it.
function shared_parameters.share_all(module, same_parts, shared)
  local cut, skips = {}, {}
  for parameter in next, shared do skips[parameter] = true end
  local has_cuts = false
  for _, item in ipairs((walk.tensors(module))) do
    local parameter = item.value
    if cuts.of(parameter) then
      has_cuts = true
      if not shared[parameter] then cut[#cut + 1] = parameter end
      skips[parameter] = true
    end
  end
  broadcast_parameters.module(module, skips)
  broadcast_parameters.tensors(cut, same_parts)
  return has_cuts
end

return shared_parameters
