--- stdlib/parallel/loss_parallel.lua: lt.parallel.loss_parallel: cross-entropy of logits of which
--- each rank has those of some classes.
-- N rows, C classes, R ranks.
--
-- What ranks exchange are three numbers a row: the largest logit, the sum of exponentials and the
-- logit of the target. The logits of all classes are never in one place. The last rank may have
-- fewer classes (core/cuts.lua): how many it and the others have comes with the largest logits.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local group_of = require "ltrain.parallel.group_of"
local transitions = require "ltrain.parallel.transitions"

local OPTIONS <const> = {
  ignore_index = { type = "integer", default = -100, doc = "targets with this id are ignored" },
  reduction = { type = "string", default = "mean", choices = { "mean", "sum", "none" },
    doc = "of the rows" },
  label_smoothing = { type = "number", default = 0, min = 0, max = 1,
    doc = "fraction of the target distributed over all classes" },
}

local WHO <const> = "parallel.loss_parallel"

-- The logits minus the largest of all classes: exponentials of them do not overflow. And tensors
-- [1]: the first of this rank's classes, from 0, and how many there are.
local function shifted(logits, dim, group)
  local rank, last, own = group:rank(), group:world_size() - 1, logits.shape[dim]
  local largest = logits:detach():amax(dim, true)
  local sizes = c.tensor({ own, rank == last and own or 0 }, { dtype = logits.dtype,
    device = logits.device })
  local all = collectives.all_reduce(c.cat({ largest:flatten(), sizes }, 1),
    { op = "max", group = group })
  local n = largest:numel()
  local each, rest = all:narrow(1, n + 1, 1):to "i64", all:narrow(1, n + 2, 1):to "i64"
  return logits - all:narrow(1, 1, n):reshape(largest.shape), each * rank, each * last + rest
end

-- The logit of each row's target, where this rank has it, else 0. Ids that are not classes are
-- left as they are, and are refused as in any lookup.
local function own_target(x, target, dim, first, count)
  local is_other = target:lt(first):logical_or(target:ge(first + x.shape[dim]))
    :logical_and(target:ge(0)):logical_and(target:lt(count))
  local ids = (target - first):masked_fill(is_other, 0)
  return x:gather(dim, ids:unsqueeze(dim)):squeeze(dim):masked_fill(is_other, 0)
end

local function check(logits, target)
  if c.is_tensor(logits) and c.is_tensor(target) and target.ndim == math.max(logits.ndim - 1, 0)
    and target.dtype == "i64" then
    return
  end
  errors.blame("%s: needs logits [N, C / R, ...] and targets [N, ...] of ids: got %s and %s", WHO,
    errors.show(logits), errors.show(target))
end

local function cross_entropy(group, logits, target, options)
  local o = config.check(options, OPTIONS, WHO)
  check(logits, target)
  if logits.dtype == "f16" or logits.dtype == "bf16" then logits = logits:to "f32" end
  local dim = logits.ndim > 1 and 2 or 1
  local x, first, count = shifted(logits, dim, group)
  local is_ignored = target:eq(o.ignore_index)
  local known = target:masked_fill(is_ignored, 0)
  local sums = { x:exp():sum(dim), own_target(x, known, dim, first, count),
    o.label_smoothing > 0 and x:sum(dim) or nil }
  local all = transitions.reduce(c.stack(sums), group)
  local log_sum = all[1]:log()
  local loss = log_sum - all[2]
  if o.label_smoothing > 0 then
    local of_all = log_sum - all[3] / count:to(all.dtype)
    loss = loss * (1 - o.label_smoothing) + of_all * o.label_smoothing
  end
  loss = loss:masked_fill(is_ignored, 0)
  if o.reduction == "none" then return loss end
  if o.reduction == "sum" then return loss:sum() end
  return loss:sum() / is_ignored:logical_not():sum():to(loss.dtype)
end

--- Returns cross_entropy(logits, target, options) for logits that are Shard(-1) along the classes
--- (dim 2, as in lt.cross_entropy) on the ranks of `mesh` (see lt.parallelize), the same value on
--- all of them. Options: ignore_index, reduction, label_smoothing.
return function(mesh)
  local group = group_of(mesh, WHO)
  return function(logits, target, options) return cross_entropy(group, logits, target, options) end
end
