--- stdlib/trainer/saving/accumulation_state.lua: saves and restores the gradients of an incomplete
-- accumulation window; where the script itself clears gradients (manual optimization, its own
-- optimizer_zero_grad), all that there are.
--
-- Each of several ranks has gathered gradients of its own samples. What is saved by agreement is
-- their sum; a save of rank 0 alone has rank 0's. Where a run resumes, rank 0 begins with what was
-- saved and the others with none: the next reduction adds them up. With deterministic = "world"
-- each slice keeps its own. Under a strategy whose ranks step by their own gradients (LocalSGD)
-- each rank's are saved and resumed; on another number of ranks each begins with an equal part of
-- their sum, as it does with a sum that was saved under another strategy.
local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local data_ranks = require "ltrain.dist.data_ranks"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local hook_calls = require "ltrain.trainer.hook_calls"
local slices = require "ltrain.trainer.ranks.slices"

local accumulation_state = {}

-- Whether the next batch may add to the gradients that are there now.
local function are_kept(state)
  return not state.window:is_empty() or not state.ranks.slices
    and (not state.automatic or hook_calls.overrides(state.module, "optimizer_zero_grad", Module))
end

local function own_gradients(state)
  local gradients = {}
  for name, parameter in state.module:named_parameters() do gradients[name] = parameter.grad end
  return next(gradients) and gradients
end

-- The sums over the ranks. A parameter that no rank has used has none.
local function sum_gradients(state)
  local _ <close> = c.no_grad()
  local buckets, cuts = require "ltrain.dist.buckets", require "ltrain.core.cuts"
  local strategy, gradients, names, parameters, own = state.strategy, {}, {}, {}, {}
  for name, parameter in state.module:named_parameters() do
    names[#names + 1] = name
    parameters[#names] = parameter
    own[#names] = strategy:has_accumulated_gradient(parameter) and 1 or 0
  end
  for i, count in ipairs(buckets.counts(own)) do
    local parameter = parameters[i]
    if count > 0 then
      gradients[names[i]] = dist.all_reduce(strategy:accumulated_gradient(parameter)
        or c.zeros(cuts.shape(parameter), { dtype = parameter.dtype, device = parameter.device }))
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

-- What each rank has gathered: a list by rank, complete on rank 0, elsewhere only this rank's own.
local function gather_ranks(state)
  local window, rank = state.window:state_dict(), dist.rank()
  local own = { used = window.used, weight = window.weight, gradients = own_gradients(state) or {} }
  return dist.gather(own) or { [rank + 1] = own }
end

--- What a checkpoint keeps: { window =, gradients =, slices =, rank_gradients = }. `agreed`: all
--- ranks are here.
function accumulation_state.collect(state, agreed)
  if not state.window then return {} end
  if state.window:left_open() then return state.window:left_open() end
  local kept = state.window:state_dict()
  if not are_kept(state) then return { window = kept } end
  local sliced = state.ranks.slices and state.optimizers[1] and gather_slices(state, agreed)
  if not agreed or dist.world_size() == 1 then
    kept.rank_zero_only = dist.world_size() > 1 or nil
    return { window = kept, gradients = not sliced and own_gradients(state) or nil,
      slices = sliced or nil }
  end
  local counts = data_ranks.counts() and 1 or 0 -- ranks that share samples count once
  kept.used = dist.all_reduce(kept.used * counts)
  kept.weight = dist.all_reduce(kept.weight * counts)
  kept.cleared = dist.all_reduce(kept.cleared and 1 or 0, { op = "max" }) == 1
  if sliced then return { window = kept, slices = sliced } end
  if not state.strategy:shares_gradients() then
    return { window = kept, rank_gradients = gather_ranks(state) }
  end
  return { window = kept, gradients = sum_gradients(state) }
end

--- The end of a fit: the gradients that its ranks keep are put together for a file, or for a fit
--- that continues. All ranks call it.
function accumulation_state.leave(state)
  if not are_kept(state) then return end
  local kept = accumulation_state.collect(state, state.ranks.many)
  state.window:leave_open(kept)
  state.trainer.left_open = { module = state.module, kept = kept }
end

-- Gradients by name, times `scale`, added to those of the module's parameters that this rank takes.
-- `is_first`: as a rank of the first replica, or of all.
local function add_gradients(state, gradients, scale, is_first)
  local _ <close> = c.no_grad()
  local cuts = require "ltrain.core.cuts"
  for name, parameter in state.module:named_parameters() do
    local grad = state.strategy:takes_gradient(parameter, is_first) and gradients[name] or nil
    local cut = cuts.of(parameter)
    if grad and cut and not has_shape(grad, parameter) then grad = cuts.take(cut, grad) end
    grad = grad and grad:to(parameter.device):to(parameter.dtype)
    if grad and scale ~= 1 then grad = grad * scale end
    if grad then parameter.grad = parameter.grad and parameter.grad + grad or grad end
  end
end

local function take(state, part, scale)
  state.window:add(part.weight * scale, part.used)
  add_gradients(state, part.gradients, scale, true)
end

-- What was saved of each rank: this rank's, or its part of all.
local function take_ranks(state, parts)
  local ranks = dist.world_size()
  if #parts == ranks or parts[1] == nil then return take(state, parts[dist.rank() + 1], 1) end
  for _, part in ipairs(parts) do take(state, part, 1 / ranks) end
end

-- A sum: it is the first replica's where it will be reduced, else each rank has its part.
local function take_sum(state, kept, gradients)
  local sum = { used = kept.used, weight = kept.weight, gradients = gradients }
  if kept.rank_zero_only or state.strategy:shares_gradients() then
    if data_ranks.replica() == 0 then take(state, sum, 1)
    else add_gradients(state, gradients, 1, false) end
  else
    take(state, sum, 1 / dist.world_size())
  end
end

local function check_slices(state, sliced)
  if (sliced == nil) ~= (state.ranks.slices ~= false) then return end
  errors.blame("fit: the checkpoint has an incomplete window, saved %s deterministic = 'world': "
    .. "resume it as it was saved", sliced and "with" or "without")
end

-- A file that rank 0 saved alone lacks what the other ranks had gathered.
local function report_missing(state, kept, path)
  if not kept.rank_zero_only or kept.used == 0 then return end
  state.trainer:say(state.automatic and ("fit: %s was saved in mid-window by rank 0 alone: of the "
    .. "first %d batches of this window it has rank 0's gradients only"):format(path, kept.batches)
    or ("fit: %s was saved by rank 0 alone between two steps of manual optimization: it has rank "
    .. "0's gradients only"):format(path))
end

-- Takes back the window's counts and gradients.
local function restore(state, kept, held, path)
  report_missing(state, kept, path)
  state.window:load_state_dict(kept)
  if not (held.gradients or held.rank_gradients or held.slices) then return end
  check_slices(state, held.slices)
  if held.slices then
    state.window:add(kept.weight, kept.used)
    slices.load_state_dict(state, held.slices)
  elseif held.rank_gradients then
    take_ranks(state, held.rank_gradients)
  else
    take_sum(state, kept, held.gradients)
  end
end

-- Gradients of a window are scaled as the losses of its run were ("16-mixed"): a run in another
-- precision continues with its own scale.
local function scale_ratio(state, saved)
  local theirs = saved.MixedPrecision and saved.MixedPrecision.scale or 1.0
  return (state.scaler and state.scaler:get_scale() or 1.0) / theirs
end

-- Outside of a window nothing says by what the sum over the ranks will be divided: it becomes that
-- of this number of ranks.
local function rank_ratio(saved)
  local kept, cut, now = saved.loops.window, saved.loops.cut or {}, dist.world_size()
  local before = kept and not kept.rank_zero_only and cut.ranks or 1
  if not kept or kept.batches > 0 or before == now then return 1.0 end
  local weight = kept.used > 0 and kept.weight / kept.used or 1.0
  kept.used, kept.weight = 0, 0.0
  return now / (before * weight)
end

local function rescale(state, saved)
  local ratio = scale_ratio(state, saved) * rank_ratio(saved)
  if ratio == 1.0 then return end
  for name, gradient in pairs(saved.gradients or {}) do
    saved.gradients[name] = gradient * ratio
  end
end

--- Takes up the gradients of an open window: those of the file `path` that the fit resumes from,
--- else those of this Trainer's last fit if it ended in mid-epoch. All ranks call it, after the
--- optimizers' state is loaded.
function accumulation_state.take_up(state, saved, path)
  local left = state.trainer.left_open
  state.trainer.left_open = nil
  if saved then
    rescale(state, saved)
    if saved.loops.window then restore(state, saved.loops.window, saved, path) end
  elseif left and left.module == state.module and state.progress.in_epoch then
    restore(state, left.kept.window, left.kept)
  end
end

return accumulation_state
