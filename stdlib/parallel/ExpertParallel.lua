--- stdlib/parallel/ExpertParallel.lua: each rank has some of the experts of an nn.MoE.
--
-- Tokens of all ranks of the group go to the ranks of their experts and back, by all_to_all. The
-- ranks have tokens of their own: an expert's gradient is the sum over those of the whole group.
-- All of them call forward the same number of times. Lepikhin et al.: GShard, 2020.
local MoE = require "ltrain.nn.MoE"
local ParallelStyle = require "ltrain.parallel.ParallelStyle"
local class = require "ltrain.core.class"

local ExpertParallel = ParallelStyle:extend("ExpertParallel")

--- All parameters of experts, whose dim 1 is the experts.
function ExpertParallel:cuts(module, site)
  if not class.is_a(module, MoE) then self:refuse(module, site, "nn.MoE") end
  self.check_size(site, "%d experts", module.num_experts)
  local found = {}
  for _, name in ipairs(MoE.expert_names) do
    if module[name] then found[name] = { dim = 1, blocks = 1, is_summed = true } end
  end
  return found
end

function ExpertParallel:apply(module, site) site.set(module, "_group", site.group) end

return ExpertParallel
