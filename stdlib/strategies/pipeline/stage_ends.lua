--- stdlib/strategies/pipeline/stage_ends.lua: after which blocks the stages of a pipeline end.
local errors = require "ltrain.core.errors"
local partition = require "ltrain.strategies.pipeline.partition"

local stage_ends = {}

--- The places of the last blocks of all stages but the last, of `stages` that divide so many
--- blocks: as the script says in `split`, else by what each block costs.
function stage_ends.find(blocks, stages, split, costs)
  if not split then return partition(costs, stages) end
  local last = split[#split]
  if #split ~= stages - 1 or last and last >= blocks then
    errors.blame("strategies.Pipeline: split must have %d numbers below %d, the number of blocks, "
      .. "for %d stages: got {%s}", stages - 1, blocks, stages, table.concat(split, ", "))
  end
  return split
end

--- The stage, from 1, that has the block at a place.
function stage_ends.stage_at(ends, place)
  for g, after in ipairs(ends) do
    if place <= after then return g end
  end
  return #ends + 1
end

return stage_ends
