--- stdlib/trainer/ranks/elastic.lua: scaling rules: what a fit does that is resumed on another
--- number of data ranks than it began with (option `elastic` of the Trainer).
--
-- Checkpoints have the number of data ranks (progress.ranks), and of the start (progress.began)
-- that number, the batch size of the script, the global batch, and the factor by which learning
-- rates are multiplied since.
-- batch = "global": the loader's batches are those of the number of ranks at the start, and each
-- rank has its share of them. On fewer ranks it computes its share in several parts, whose
-- gradients are accumulated, so that none is larger than a batch of a rank was at the start. So
-- batches, steps, and all that counts them are those of the undisturbed run.
-- batch = "per_rank": the batch of a rank stays, the global batch is another one, and the learning
-- rates are multiplied by a function of the ratio of the global batches.
local class = require "ltrain.core.class"
local data_ranks = require "ltrain.dist.data_ranks"
local errors = require "ltrain.core.errors"

local elastic = {}

local DEFAULT <const> = { batch = "global", lr = "keep" }

-- Factors of learning rates, by the ratio of the global batches.
local FACTORS <const> = {
  linear = function(ratio) return ratio end,
  sqrt = function(ratio) return ratio ^ 0.5 end,
}

local function rules_of(state) return state.trainer.options.elastic or DEFAULT end

-- The batch size that the script gave a loader; nil: there is none, or several.
local function batch_size_of(loader)
  return type(loader) == "table" and math.tointeger(loader.global_batch_size or loader.batch_size)
    or nil
end

-- Whether a script that resumes gave the loader the batch size with which the fit began.
local function has_same_size(began, loader) return began.batch_size == batch_size_of(loader) end

--- Raises when how a fit began, as a checkpoint says it, is not possible.
function elastic.check(began)
  if not began or began.ranks >= 1 and began.lr_factor > 0 and began.lr_factor < math.huge then
    return
  end
  errors.blame("fit: it began on %s ranks, with learning rates times %s: that is not possible",
    began.ranks, began.lr_factor)
end

--- The number of ranks whose global batches a loader of training data has to make; nil: that of the
--- ranks that there are.
function elastic.batches_of(state, kind, loader)
  local began = state.progress.began
  if kind ~= "train" or not began or began.ranks == data_ranks.size() or state.ranks.slices
    or rules_of(state).batch ~= "global" or not has_same_size(began, loader) then
    return nil
  end
  return began.ranks
end

--- Whether the global batch `now` may be another than that of the checkpoint: the script gave the
--- batch size that it had given, and the rules say what follows.
function elastic.allows_change(state, loader, now)
  local began = state.progress.began
  return began ~= nil and has_same_size(began, loader)
    and (rules_of(state).batch == "per_rank" or now == began.global_batch)
end

-- How many parts a rank's share of a batch is computed in, on `ranks` ranks.
local function parts_on(state, source, ranks)
  local began, loader, strategy = state.progress.began, source.loader, state.strategy
  local is_kept = began.global_batch and class.has_method(loader, "least_samples")
    and loader:global_batch() == began.global_batch
  if not is_kept or rules_of(state).batch ~= "global" or not state.automatic
    or state.ranks.slices or strategy.run_microbatches or strategy.splits_batches then
    return 1
  end
  return math.max(1, (began.ranks + ranks - 1) // ranks)
end

-- The factor of learning rates for the global batch `now` (nil: not known).
local function factor_of(state, now)
  local began, rules = state.progress.began, rules_of(state)
  if rules.batch == "global" then return 1.0 end
  local factor = FACTORS[rules.lr]
  if not factor then return began.lr_factor end
  local ratio = now and began.global_batch and now / began.global_batch
    or data_ranks.size() / began.ranks
  return factor(ratio)
end

-- Multiplies all learning rates, also those to which schedulers come later.
local function multiply_rates(state, factor)
  for _, optimizer in ipairs(state.optimizers) do
    for _, group in ipairs(optimizer.param_groups) do
      if type(group.lr) == "number" then group.lr = group.lr * factor end
    end
  end
  for _, config in ipairs(state.schedulers) do
    local scheduler = config.scheduler
    if type(scheduler) == "table" and scheduler.multiply_rates then
      scheduler:multiply_rates(factor)
    end
  end
end

-- "global batch 32 kept", "global batch 24 (32 at the start)".
local function batch_text(state, now)
  local at_start = state.progress.began.global_batch
  if not now or not at_start then
    return rules_of(state).batch == "global"
      and ("batches of %d ranks"):format(state.progress.began.ranks) or "batches a rank unchanged"
  end
  if now == at_start then return ("global batch %d kept"):format(now) end
  return ("global batch %d (%d at the start)"):format(now, at_start)
end

local function report(state, source, now, before, factor)
  local accumulated = state.trainer.accumulate_grad_batches
  local from = parts_on(state, source, before) * accumulated
  local to = state.ranks.parts * accumulated
  local ranks = data_ranks.size()
  state.trainer:say(("resumed on %d %s%s (was %d): %s, accumulation %s, lr %s"):format(ranks,
    data_ranks.is_shared() and "data " or "", ranks == 1 and "rank" or "ranks", before,
    batch_text(state, now), from == to and tostring(to) or ("%d -> %d"):format(from, to),
    factor == 1.0 and "unchanged" or ("x %.4g"):format(factor)))
end

--- Called when the training data is there. `now`: its global batch, nil if that is not known;
--- `before`: the number of ranks of the checkpoint, nil without one.
function elastic.take_up(state, source, now, before)
  local progress, ranks = state.progress, data_ranks.size()
  local began = progress.began
  progress.ranks = ranks
  if not source then return end
  if not began or not has_same_size(began, source.loader) then
    progress.began = { ranks = ranks, batch_size = batch_size_of(source.loader),
      global_batch = now, lr_factor = 1.0 }
    return
  end
  state.ranks.parts = parts_on(state, source, ranks)
  local factor = factor_of(state, now)
  local change = factor / began.lr_factor
  if change ~= 1.0 then
    multiply_rates(state, change)
    progress.began = { ranks = began.ranks, batch_size = began.batch_size,
      global_batch = began.global_batch, lr_factor = factor }
  end
  if before and before ~= ranks then report(state, source, now, before, change) end
end

return elastic
