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
local cuts = require "ltrain.core.cuts"
local errors = require "ltrain.core.errors"
local layouts = require "ltrain.parallel.layouts"
local padded = require "ltrain.parallel.padded"

local transitions = {}

-- Parts have one size, but the last one may be smaller (core/cuts.lua) along a dim of which the
-- caller gives the size of the whole: collectives then send it with zeros behind it.

-- Without a history.

local function sum(x, group) return collectives.all_reduce(x:contiguous(), { group = group }) end

-- This rank's place in x along a dim: see cuts.place. Without `size` parts must be equal.
local function place_in(x, group, dim, size)
  local ranks = group:world_size()
  local of = size or x.shape[dim > 0 and dim or x.ndim + dim + 1]
  if of and (size or of % ranks == 0) then return cuts.place(of, ranks, group:rank()) end
  errors.blame("parallel: dim %d of %s does not divide among %d ranks", dim, errors.show_shape(x),
    ranks)
end

local function part(x, group, dim, size)
  local from, n = place_in(x, group, dim, size)
  return x:narrow(dim, from + 1, n):contiguous()
end

-- Dim 1 of collectives is the one that is gathered.
local function joined(x, group, dim, size)
  if size then x = padded(x, dim, select(3, place_in(x, group, dim, size))) end
  local whole = collectives.all_gather(x:transpose(1, dim):contiguous(),
    { group = group, cat = true }):transpose(1, dim)
  return (size and whole:narrow(dim, 1, size) or whole):contiguous()
end

local function summed_part(x, group, dim, size)
  local _, n, each = place_in(x, group, dim, size)
  if size then x = padded(x, dim, each * group:world_size()) end
  local own = collectives.reduce_scatter(x:transpose(1, dim):contiguous(), { group = group })
    :transpose(1, dim)
  return (n < each and own:narrow(dim, 1, n) or own):contiguous()
end

local function same(x) return x:detach() end

local function transition(name, forward, backward)
  local fn = Function {
    name = "parallel." .. name,
    forward = function(ctx, x, group, dim, size)
      ctx.group, ctx.along, ctx.of = group, dim, size
      return forward(x, group, dim, size)
    end,
    backward = function(ctx, grad) return backward(grad, ctx.group, ctx.along, ctx.of) end,
  }
  --- x of a rank of `group`; `dim`: along which parts are; `size`: of the whole, if the last part
  --- may be smaller.
  transitions[name] = function(x, group, dim, size)
    if group:world_size() == 1 then return x end
    return fn(x, group, dim, size)
  end
end

transition("copy", same, sum)
transition("reduce", sum, same)
transition("gather", joined, part)
transition("split", part, joined)
transition("reduce_scatter", summed_part, joined)
transition("gather_summing", joined, summed_part)

-- The size along a dim, if that is the last one, of `features`.
local function size_along(dim, x, features)
  return (dim == -1 or dim == x.ndim) and features or nil
end

--- Changes the layout of x from one to another, where the gradient has the same layout. `features`:
--- the size of the last dim of the whole (nil: its parts are equal).
function transitions.change(x, from, to, group, features)
  if layouts.equal(from, to, x.ndim) then return x end
  if from.kind == "shard" then
    x = transitions.gather(x, group, from.dim, size_along(from.dim, x, features))
  end
  if to.kind == "shard" then
    x = transitions.split(x, group, to.dim, size_along(to.dim, x, features))
  end
  return x
end

--- x, replicated, for layers of which each rank has a part: their gradients are to be summed.
function transitions.enter(x, from, group, features)
  if from.kind == "shard" then
    return transitions.gather_summing(x, group, from.dim, size_along(from.dim, x, features))
  end
  return transitions.copy(x, group)
end

--- The sum of the ranks' x in a layout.
function transitions.sum_to(x, to, group, features)
  if to.kind == "shard" then
    return transitions.reduce_scatter(x, group, to.dim, size_along(to.dim, x, features))
  end
  return transitions.reduce(x, group)
end

return transitions
