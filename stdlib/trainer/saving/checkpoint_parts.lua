--- stdlib/trainer/saving/checkpoint_parts.lua: whether a rank alone has all parts of a checkpoint.
--
-- A strategy may have ranks hold different things: a share of an optimizer's state, weights of
-- their own. A file of such a run takes all ranks, which a rank that has failed cannot ask any
-- more.
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"

local checkpoint_parts = {}

-- Whether each rank needs gradients of its own to resume, which it gathers now.
local function has_own_gradients(state)
  return state.window and not state.window:is_empty() and not state.strategy:shares_gradients()
end

--- Whether this rank has them: weights alone, or all that a run needs.
function checkpoint_parts.are_here(state, weights_only)
  local strategy = state.strategy
  return not state.ranks.many or strategy:is_replicated "parameter"
    and (weights_only or strategy:is_replicated "optimizer"
      and strategy:is_replicated "strategy" and not has_own_gradients(state))
end

--- Whether each rank writes a file of its own.
function checkpoint_parts.are_sharded(state)
  return state.strategy.state_dict_type == "sharded"
end

--- Whether all ranks must call a save: they have parts, or write them. A rank that has failed is
--- alone.
function checkpoint_parts.take_all_ranks(state, weights_only)
  local is_sharded = checkpoint_parts.are_sharded(state) and not state.failed
    and dist.world_size() > 1
  return is_sharded or not checkpoint_parts.are_here(state, weights_only)
end

-- What ranks other than the first write parts of.
local SHARED <const> = { "state_dict", "buffer_names", "current_model_state", "optimizer_states",
  "gradients", "strategy" }

--- What a rank writes of its checkpoint where each writes its parts.
function checkpoint_parts.of_rank(saved, rank)
  if rank == 0 then return saved end
  local kept = {}
  for _, name in ipairs(SHARED) do kept[name] = saved[name] end
  return kept
end

local function name_of(state) return "strategies." .. getmetatable(state.strategy).__name end

--- Why a run that has failed cannot be saved; nil when it can.
function checkpoint_parts.why_not_after_failure(state, weights_only)
  if checkpoint_parts.are_here(state, weights_only) then return nil end
  return ("under %s each rank has a part of the checkpoint, and after an error no rank can "
    .. "gather the others': nothing is saved"):format(name_of(state))
end

--- Raises where a rank asks for a file by itself and cannot make it.
function checkpoint_parts.check_request(state, weights_only)
  if not checkpoint_parts.take_all_ranks(state, weights_only) then return end
  errors.blame("request_checkpoint: under %s each rank has a part of the checkpoint: every "
    .. "rank must request it, with agreed = true (a callback with all_ranks = true does)",
    name_of(state))
end

return checkpoint_parts
