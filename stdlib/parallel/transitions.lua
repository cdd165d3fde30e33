--- stdlib/parallel/transitions.lua: differentiable changes of layout among the ranks of a group
--- that compute one module together.
--
-- Every rank of the group computes the same loss, so that the gradient of a replicated tensor is
-- the same on all of them, as the tensor is: an all-reduce in forward has nothing to do in backward
-- (f and g of Shoeybi et al., Megatron-LM, 2019; with parts of sequences Korthikanti et al.,
-- Reducing Activation Recomputation, 2022). A *sum* here is of tensors, or of gradients, that are
-- each rank's share of one.
--
-- | function         | forward        | backward       |
-- | copy             | nothing        | all-reduce     |
-- | reduce           | all-reduce     | nothing        |
-- | gather           | all-gather     | own part       |
-- | split            | own part       | all-gather     |
-- | reduce_scatter   | reduce-scatter | all-gather     |
-- | gather_summing   | all-gather     | reduce-scatter |
local Function = require "ltrain.autograd.Function"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"
local layouts = require "ltrain.parallel.layouts"

local transitions = {}

-- Without a history.

local function sum(x, group) return collectives.all_reduce(x:contiguous(), { group = group }) end

-- The size of a part of x along a dim.
local function part_size(x, group, dim)
  local ranks, size = group:world_size(), x.shape[dim > 0 and dim or x.ndim + dim + 1]
  if size and size % ranks == 0 then return size // ranks end
  errors.blame("parallel: dim %d of %s does not divide among %d ranks", dim, errors.show_shape(x),
    ranks)
end

local function part(x, group, dim)
  local each = part_size(x, group, dim)
  return x:narrow(dim, group:rank() * each + 1, each):contiguous()
end

-- Dim 1 of collectives is the one that is gathered.
local function joined(x, group, dim)
  return collectives.all_gather(x:transpose(1, dim):contiguous(), { group = group, cat = true })
    :transpose(1, dim):contiguous()
end

local function summed_part(x, group, dim)
  part_size(x, group, dim)
  return collectives.reduce_scatter(x:transpose(1, dim):contiguous(), { group = group })
    :transpose(1, dim):contiguous()
end

local function same(x) return x:detach() end

local function transition(name, forward, backward)
  local fn = Function {
    name = "parallel." .. name,
    forward = function(ctx, x, group, dim)
      ctx.group, ctx.along = group, dim
      return forward(x, group, dim)
    end,
    backward = function(ctx, grad) return backward(grad, ctx.group, ctx.along) end,
  }
  --- x of a rank of `group`; `dim`: along which parts are.
  transitions[name] = function(x, group, dim)
    if group:world_size() == 1 then return x end
    return fn(x, group, dim)
  end
end

transition("copy", same, sum)
transition("reduce", sum, same)
transition("gather", joined, part)
transition("split", part, joined)
transition("reduce_scatter", summed_part, joined)
transition("gather_summing", joined, summed_part)

--- Changes the layout of x from one to another, where the gradient has the same layout.
function transitions.change(x, from, to, group)
  if layouts.equal(from, to, x.ndim) then return x end
  if from.kind == "shard" then x = transitions.gather(x, group, from.dim) end
  if to.kind == "shard" then x = transitions.split(x, group, to.dim) end
  return x
end

--- x, replicated, for layers of which each rank has a part: their gradients are to be summed.
function transitions.enter(x, from, group)
  if from.kind == "shard" then return transitions.gather_summing(x, group, from.dim) end
  return transitions.copy(x, group)
end

--- The sum of the ranks' x in a layout.
function transitions.sum_to(x, to, group)
  if to.kind == "shard" then return transitions.reduce_scatter(x, group, to.dim) end
  return transitions.reduce(x, group)
end

return transitions
