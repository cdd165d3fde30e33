--- stdlib/trainer/saving/accumulation_state.lua: the gradients of a window that is
-- not complete when a run is saved, and where it resumes.
--
-- Each of several ranks has gathered gradients of its own samples. What is saved by agreement is
-- their sum; a save of rank 0 alone has rank 0's. Where a run resumes, rank 0 begins with what was
-- saved and the others with none: the next reduction adds them up. With deterministic = "world"
-- each slice keeps its own.
local c = require "ltrain.c"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local slices = require "ltrain.trainer.ranks.slices"

local accumulation_state = {}

local function own_gradients(state)
  local gradients = {}
  for name, parameter in state.module:named_parameters() do gradients[name] = parameter.grad end
  return gradients
end

-- The sums over the ranks. A parameter that no rank has used has none.
local function sum_gradients(state)
  local _ <close> = c.no_grad()
  local gradients = {}
  for name, parameter in state.module:named_parameters() do
    if dist.all_reduce(parameter.grad and 1 or 0, { op = "max" }) == 1 then
      gradients[name] = dist.all_reduce(parameter.grad or c.zeros_like(parameter))
    end
  end
  return gradients
end

-- The gradients of all slices in their order; nil on other ranks than the first.
local function gather_slices(state, agreed)
  local own = slices.state_dict(state)
  if not agreed or dist.world_size() == 1 then return own end
  local list = {}
  for _, of_rank in ipairs(dist.gather(own) or {}) do
    table.move(of_rank, 1, #of_rank, #list + 1, list)
  end
  return list
end

--- What a checkpoint keeps: { window =, gradients =, slices = }. `agreed`: all ranks are here.
function accumulation_state.collect(state, agreed)
  local window = state.loop.window
  if not window then return {} end
  if state.loop.left_open then return state.loop.left_open end
  local kept = { batches = window.batches, used = window.used, weight = window.weight,
    cleared = window.cleared or false }
  if window.batches == 0 then return { window = kept } end
  local sliced = state.ranks.slices and state.optimizers[1] and gather_slices(state, agreed)
  if not agreed or dist.world_size() == 1 then
    kept.rank_zero_only = dist.world_size() > 1 or nil
    return { window = kept, gradients = not sliced and own_gradients(state) or nil,
      slices = sliced or nil }
  end
  kept.used, kept.weight = dist.all_reduce(kept.used), dist.all_reduce(kept.weight)
  kept.cleared = dist.all_reduce(kept.cleared and 1 or 0, { op = "max" }) == 1
  if sliced then return { window = kept, slices = sliced } end
  return { window = kept, gradients = sum_gradients(state) }
end

--- The end of a fit: what its ranks have gathered in a window that is not complete is put together
--- for a file, or for a fit that continues. All ranks call it.
function accumulation_state.leave(state)
  if state.loop.window.batches == 0 then return end
  state.loop.left_open = accumulation_state.collect(state, state.ranks.many)
  state.trainer.left_open = { module = state.module, kept = state.loop.left_open }
end

--- Takes back the window's counts; says where other ranks' gradients are missing.
function accumulation_state.restore(state, kept, path)
  local window = state.loop.window
  if not kept then return end
  if kept.rank_zero_only then
    state.trainer:say(("fit: %s was saved in mid-window by rank 0 alone: of the first %d batches "
      .. "of this window it has rank 0's gradients only"):format(path, kept.batches))
  end
  window.batches, window.cleared = kept.batches, kept.cleared
  if not state.ranks.slices and not state.trainer.is_global_zero then return end
  window.used, window.weight = kept.used, kept.weight
end

-- Gradients, or those of slices.
local function restore_gradients(state, gradients, sliced)
  if state.loop.window.batches > 0 and (sliced == nil) == (state.ranks.slices ~= false) then
    errors.blame("fit: the checkpoint has an incomplete window, saved %s deterministic = 'world': "
      .. "resume it as it was saved", sliced and "with" or "without")
  elseif sliced then
    slices.load_state_dict(state, sliced)
  elseif gradients and state.trainer.is_global_zero then
    for name, parameter in state.module:named_parameters() do
      if gradients[name] then parameter.grad = gradients[name]:to(parameter.device) end
    end
  end
end

--- Takes up the gradients of an open window: those of the file that the fit resumes from, else
--- those of this Trainer's last fit if it ended in mid-epoch.
function accumulation_state.take_up(state, saved)
  local left = state.trainer.left_open
  state.trainer.left_open = nil
  if saved then
    restore_gradients(state, saved.gradients, saved.slices)
  elseif left and left.module == state.module and state.progress.in_epoch then
    accumulation_state.restore(state, left.kept.window)
    restore_gradients(state, left.kept.gradients, left.kept.slices)
  end
end

return accumulation_state
