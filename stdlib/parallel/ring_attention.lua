--- stdlib/parallel/ring_attention.lua: lt.parallel.ring_attention: attention over a sequence that
--- is split among ranks.
--
-- Each rank has T / N queries, keys and values. Keys and values go round a ring of the ranks, and
-- each block is attended to where it is while the next one is under way; the results are merged by
-- the largest score and the sum of exponentials of each row, as FlashAttention merges its blocks.
-- Backward goes round once more: the probabilities are computed again from the merged numbers, and
-- the gradients of keys and values travel with their blocks until they are home. No rank ever has
-- more than two blocks of keys and values, and nothing of size T x T. Liu, Zaharia, Abbeel: Ring
-- Attention with Blockwise Transformers for Near-Infinite Context, 2023.
--
-- H heads, T positions, N ranks, D features of a head, E of a value.
local Function = require "ltrain.autograd.Function"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local ring = require "ltrain.parallel.ring"

local WHO <const> = "ring_attention"

-- attend(q, k, v, mask, options) -> out, stats [2, .., T]: the largest score of each row, and the
-- sum of exp(score - largest). The backward takes what rows have over all blocks.
local attend <const> = c.runtime.operation("scaled_dot_product_attention", WHO, true)
local attend_backward <const> = c.runtime.operation("scaled_dot_product_attention_backward", WHO)

-- Stands for the largest score of a row of a block that sees nothing: exp(-inf - -inf) is NaN.
local NOTHING <const> = -1e38

-- Which of a rank's queries and keys meet in a block, and how. In zigzag order the queries of rank
-- r are in chunks r and 2 N - 1 - r: both see the first chunk of each rank before it, and of each
-- rank after it the second alone sees both.
local WHOLE <const>, DIAGONAL <const> = {}, { causal = true }
local EARLIER <const>, LATER <const> = { keys = 1 }, { queries = 2 }

-- How the queries of rank `rank` meet the keys of rank `from`; nil: they see none.
local function meeting_of(o, rank, from)
  if not o.causal then return WHOLE end
  if from == rank then return DIAGONAL end
  if o.balance then return from < rank and EARLIER or LATER end
  return from < rank and WHOLE or nil
end

-- What a step makes is released by `<close>`, not by the collector: a rank has no more than two
-- blocks of others at a time.

-- x in a dtype: x itself where it has it (x:to would give its memory another owner).
local function in_dtype(x, dtype)
  if x.dtype == dtype then return x end
  local _ <close> = x
  return x:to(dtype)
end

-- A view of half `which` (1 or 2; nil: all) of a dim, counted from the end.
local function half(x, which, dim)
  if not x then return nil end
  dim = x.ndim + 1 - dim
  local n = which and x.shape[dim] // 2 or x.shape[dim]
  return x:narrow(dim, which == 2 and n + 1 or 1, n)
end

local function rows_of(x, which) return half(x, which, 2) end

-- a * b, of a number for each row: b [.., T].
local function scale_rows(a, b)
  local column <close> = b:unsqueeze(-1)
  return a * column
end

-- Adds the result of a block to what there is of the rows: `out` is the sum over values before the
-- division by `sum`.
local function merge(all, out, most, sum, which)
  local to <close> = rows_of(all.out, which)
  local rows <close>, sums <const> = half(all.most, which, 1), half(all.sum, which, 1)
  local largest <close> = rows:maximum(most)
  local before <close> = (rows - largest):exp()
  local now <const> = (most - largest):exp() * sum
  local column <close> = before:unsqueeze(-1)
  local added <close> = scale_rows(out, now)
  to:mul_(column):add_(added)
  sums:mul_(before):add_(now)
  rows:copy_(largest)
end

local function options_of(o, meets)
  return { causal = meets.causal or false, scale = o.scale, dropout_p = o.dropout_p,
    enable_gqa = o.enable_gqa }
end

local function forward_block(o, all, q, block, meets)
  local queries <close> = rows_of(q, meets.queries)
  local k <close> = rows_of(block[1], meets.keys)
  local v <close> = rows_of(block[2], meets.keys)
  local mask <close> = half(block[3], meets.keys, 1)
  local out, stats = attend(queries, k, v, mask, options_of(o, meets))
  if not stats then errors.blame("%s: %s has no kernel of attention", WHO, q.device) end
  local wide <close> = in_dtype(out, o.wide)
  local most, sum = stats:select(1, 1), stats:select(1, 2)
  if mask then most = most:clamp(NOTHING) end
  if all then
    merge(all, wide, most, sum, meets.queries)
    return all
  end
  return { out = scale_rows(wide, sum), most = most:clone(), sum = sum:clone() }
end

-- Ranks that have blocks of other lengths would see them at other positions.
local function check_block(o, block, own, from)
  if not o.causal or block[1].shape[block[1].ndim - 1] == own.shape[own.ndim - 1] then return end
  errors.blame("%s: ranks have keys of different lengths: here %s, of rank %d %s", WHO,
    errors.show_shape(own), from, errors.show_shape(block[1]))
end

-- Calls fn(block, source, step) for each block, in the order in which they come by, while the next
-- one is under way.
local function each_block(o, own, fn)
  local block, device = own, own[1].device
  for step = 0, o.ring.size - 1 do
    local next_block = step < o.ring.size - 1 and ring.shift(o.ring, block, device)
    local from = ring.source(o.ring, step)
    check_block(o, block, own[1], from)
    fn(block, from, step)
    local following = next_block and next_block()
    if step > 0 then ring.release(block) end
    block = following
  end
end

-- Sets the generator to draw `number` after the position `draws`.
local function draw_at(draws, number)
  c.runtime.rng_set { seed = draws.seed, stream = draws.stream, batch = draws.batch,
    ordinal = draws.ordinal + number }
end

-- Blocks that drop weights have N x N draws from `draws` on, N for each rank. Until the result is
-- closed the generator is at those of this rank; then at draw `number` after `stop`.
local function draw_for_blocks(o, draws, stop, number)
  if o.dropout_p == 0 then return nil end
  draw_at(draws, o.ring.rank * o.ring.size)
  return setmetatable({}, { __close = function() draw_at(stop, number) end })
end

local function forward(ctx, o, q, k, v, mask)
  local all
  ctx.options, ctx.draws = o, c.runtime.rng_get()
  local _ <close> = draw_for_blocks(o, ctx.draws, ctx.draws, o.ring.size * o.ring.size)
  each_block(o, { k, v, mask }, function(block, from)
    local meets = meeting_of(o, o.ring.rank, from)
    if meets then all = forward_block(o, all, q, block, meets) end
  end)
  local column <close> = all.sum:unsqueeze(-1)
  local out = in_dtype(all.out:div_(column), q.dtype)
  ctx:save_for_backward(q, k, v, out, c.stack { all.most, all.sum }, mask)
  return out
end

local function backward_block(o, saved, grad, block, meets)
  local g <close>, q <const> = rows_of(grad, meets.queries), rows_of(saved[1], meets.queries)
  local k <close> = rows_of(block[1], meets.keys)
  local v <close> = rows_of(block[2], meets.keys)
  local out <close> = rows_of(saved[4], meets.queries)
  local stats <close> = half(saved[5], meets.queries, 1):contiguous() -- as the kernels take it
  local mask <close> = half(block[3], meets.keys, 1)
  return attend_backward(g, q, k, v, out, stats, mask, options_of(o, meets))
end

-- to[rows] += from
local function add_rows(to, which, from)
  local _ <close> = from
  local rows <close> = rows_of(to, which)
  rows:add_(from)
end

local function backward(ctx, grad)
  local o, saved = ctx.options, table.pack(ctx:saved_tensors())
  local q, k, v = saved[1], saved[2], saved[3]
  local _ <close> = draw_for_blocks(o, ctx.draws, c.runtime.rng_get(), 0)
  local dq, gradients, arriving
  each_block(o, { k, v, saved[6] }, function(block, from, step)
    local meets = meeting_of(o, o.ring.rank, from)
    local of_q, of_k, of_v
    if meets then of_q, of_k, of_v = backward_block(o, saved, grad, block, meets) end
    if step == 0 then -- the rank's own block, all of it
      dq = in_dtype(of_q, o.wide)
      gradients = { in_dtype(of_k, o.wide), in_dtype(of_v, o.wide) }
    else
      local sent = gradients
      gradients = arriving()
      ring.release(sent)
      if meets then
        add_rows(dq, meets.queries, of_q)
        add_rows(gradients[1], meets.keys, of_k)
        add_rows(gradients[2], meets.keys, of_v)
      end
    end
    arriving = o.ring.size > 1 and ring.shift(o.ring, gradients, q.device)
  end)
  if arriving then
    local sent = gradients
    gradients = arriving()
    ring.release(sent)
  end
  return nil, in_dtype(dq, q.dtype), in_dtype(gradients[1], k.dtype),
    in_dtype(gradients[2], v.dtype)
end

local ring_function = Function { name = WHO, forward = forward, backward = backward,
  once_differentiable = true }

local OPTIONS <const> = require "ltrain.parallel.split_attention_options"

local function check_mask(mask, k)
  if not mask then return end
  local last, rows = mask.shape[mask.ndim], mask.ndim > 1 and mask.shape[mask.ndim - 1] or 1
  if rows ~= 1 or last ~= k.shape[k.ndim - 1] then
    errors.blame("%s: mask must be [.., 1, %d], of this rank's keys: got %s", WHO,
      k.shape[k.ndim - 1], errors.show_shape(mask))
  elseif mask.requires_grad then
    errors.blame("%s: mask has no gradient: write mask:detach()", WHO)
  end
end

local function check_shapes(o, q, k, v)
  for i, x in ipairs { q, k, v } do
    if not c.is_tensor(x) or x.ndim < 2 or x.ndim > 4 then
      errors.blame("%s: %s must be a tensor [.., T / N, D] of 2 to 4 dims: got %s", WHO,
        ("qkv"):sub(i, i), errors.show(x))
    end
  end
  local t, s = q.shape[q.ndim - 1], k.shape[k.ndim - 1]
  if o.causal and t ~= s then
    errors.blame("%s: causal needs as many queries as keys: got q %s and k %s", WHO,
      errors.show_shape(q), errors.show_shape(k))
  elseif o.causal and o.balance and o.ring.size > 1 and t % 2 ~= 0 then
    errors.blame("%s: %d positions of a rank are not two chunks of the sequence (balance): q is %s",
      WHO, t, errors.show_shape(q))
  end
end

-- As autocast would have it of the operation: backward then gets what forward had.
local function cast(x)
  local dtype = c.is_autocast_enabled()
  return dtype and x.dtype ~= "f64" and x:to(dtype) or x
end

--- Attention over a sequence that is split among the ranks of a group: each has T / N positions of
--- q, k and v. Differentiable once; equal to lt.scaled_dot_product_attention on the whole sequence,
--- but for rounding, and for dropout, which draws other numbers.
---@param q Tensor [.., H, T / N, D] -> [.., H, T / N, E]
---@param k Tensor [.., H, T / N, D]
---@param v Tensor [.., H, T / N, E]
return function(q, k, v, options)
  local o = config.check(options, OPTIONS, WHO)
  o.ring = ring.of(o.group)
  check_shapes(o, q, k, v)
  check_mask(o.mask, k)
  o.scale = o.scale or 1 / math.sqrt(math.max(q.shape[q.ndim], 1))
  o.wide = q.dtype == "f64" and "f64" or "f32"
  q, k, v = cast(q), cast(k), cast(v)
  local _ <close> = c.autocast(false)
  return (ring_function(o, q, k, v, o.mask))
end
