--- stdlib/trainer/saving/sharded_save.lua: saves a checkpoint of which each rank writes its part
--- (state_dict_type = "sharded").
local checkpoint_parts = require "ltrain.trainer.saving.checkpoint_parts"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"

local ALONE <const> = { rank = 0, size = 1, gather = function(value) return { value } end,
  scatter = function(list) return list[1] end }

local function all_ranks()
  return { rank = dist.rank(), size = dist.world_size(), gather = dist.gather,
    scatter = dist.scatter }
end

-- Waits until the checkpoint is complete: true, or nil and the reason, the same on all ranks.
local function complete(saving, ranks)
  if ranks == ALONE then return saving:wait() end
  for rank, one in ipairs(dist.all_gather { saving:wait_own() }) do
    if not one[1] then
      if ranks.rank == 0 then saving:discard() end
      return nil, ("rank %d: %s"):format(rank - 1, (one[2]:gsub("^save: ", "")))
    end
  end
  local result = dist.broadcast(ranks.rank == 0 and { saving:wait() } or false)
  return result[1], result[2]
end

local function begin(state, saved, path, ranks)
  local io = state.strategy.checkpoint_io
  if not io.save_sharded then
    errors.blame("save_checkpoint: state_dict_type = 'sharded' needs a checkpoint_io with "
      .. "save_sharded: %s has none", errors.show(io))
  end
  return io:save_sharded(checkpoint_parts.of_rank(saved, ranks.rank), path, ranks)
end

--- Each rank writes what it has of `saved`; `together`: all ranks are here. Returns when it is
--- complete, or with `later` what is on its way: an object with done() and wait().
return function(state, saved, path, together, later)
  local ranks = together and all_ranks() or ALONE
  local saving, message = exchange("save_checkpoint", begin, state, saved, path, ranks)
  if saving and later then return saving end
  local ok
  if saving then ok, message = exchange("save_checkpoint", complete, saving, ranks) end
  if not ok then errors.blame("save_checkpoint: %s", message) end
end
