--- stdlib/parallel/ulysses_attention.lua: lt.parallel.ulysses_attention: attention over a sequence
--- that is split among ranks, by exchanging heads.
--
-- An all_to_all before attention gives each rank all positions of some of the heads, one after it
-- all heads of its own positions again. Fewer messages than the ring, but a rank has the whole
-- sequence for its heads, and there are at most as many ranks as heads of keys. Jacobs et al.:
-- DeepSpeed Ulysses, 2023.
--
-- B batch, H heads, T positions, N ranks, D features of a head.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local split = require "ltrain.parallel.split_sequence"

local WHO <const> = "ulysses_attention"

local attend <const> = c.runtime.operation("scaled_dot_product_attention", WHO)

local OPTIONS <const> = require "ltrain.parallel.split_attention_options"

-- The chunks of all ranks along a dim, in the order of ranks, to the order of the sequence; with
-- `back` the other way. As where the ranks have chunk r of N each.
local function reorder(x, dim, o, back)
  if not o.balance or o.ranks == 1 then return x end
  local each, list = x.shape[dim] // (2 * o.ranks), {}
  for rank = 0, o.ranks - 1 do
    for i, chunk in ipairs((split.chunks(rank, o.ranks, true))) do
      local place = 2 * rank + i
      local from, to = back and chunk + 1 or place, back and place or chunk + 1
      list[to] = x:narrow(dim, (from - 1) * each + 1, each)
    end
  end
  return c.cat(list, { dim = dim })
end

-- [B, H, T / N, D] of all ranks -> [B, H / N, T, D] of this rank's heads.
local function heads_of_rank(x, o)
  local b, h, t, d = table.unpack(x.shape)
  local parts = x:reshape(b, o.ranks, h // o.ranks, t, d):permute(2, 1, 3, 4, 5):contiguous()
  local came = collectives.all_to_all(parts, { group = o.group })
  came = came:permute(2, 3, 1, 4, 5):reshape(b, h // o.ranks, o.ranks * t, d)
  return reorder(came, 3, o)
end

-- [B, H / N, T, D] -> [B, H, T / N, D], the other way round.
local function positions_of_rank(x, o)
  x = reorder(x, 3, o, true)
  local b, h, t, d = table.unpack(x.shape)
  local parts = x:reshape(b, h, o.ranks, t // o.ranks, d):permute(3, 1, 2, 4, 5):contiguous()
  local came = collectives.all_to_all(parts, { group = o.group })
  return came:permute(2, 1, 3, 4, 5):reshape(b, o.ranks * h, t // o.ranks, d)
end

-- [.., 1, T / N] of all ranks -> [.., 1, T].
local function whole_mask(mask, o, k)
  if not mask then return nil end
  local last, rows = mask.shape[mask.ndim], mask.ndim > 1 and mask.shape[mask.ndim - 1] or 1
  local heads = mask.ndim > 2 and mask.shape[mask.ndim - 2] or 1
  if rows ~= 1 or heads ~= 1 or last ~= k.shape[3] then
    errors.blame("%s: mask must be [.., 1, 1, %d], of this rank's keys: got %s", WHO, k.shape[3],
      errors.show_shape(mask))
  end
  return split.unsplit_sequence(mask:detach(), mask.ndim, { group = o.group, balance = o.balance })
end

local function check_shapes(o, q, k, v)
  for i, x in ipairs { q, k, v } do
    local name = ("qkv"):sub(i, i)
    if not c.is_tensor(x) or x.ndim ~= 4 then
      errors.blame("%s: %s must be a tensor [B, H, T / N, D]: got %s", WHO, name, errors.show(x))
    elseif x.shape[2] % o.ranks ~= 0 then
      errors.blame("%s: %d heads of %s do not divide among %d ranks: %s", WHO, x.shape[2], name,
        o.ranks, errors.show_shape(x))
    elseif o.balance and o.ranks > 1 and x.shape[3] % 2 ~= 0 then
      errors.blame("%s: %d positions of a rank are not two chunks of the sequence (balance): %s is "
        .. "%s", WHO, x.shape[3], name, errors.show_shape(x))
    end
  end
end

--- Attention over a sequence that is split among the ranks of a group, whose heads are exchanged:
--- each rank has T / N positions of q, k and v. The heads must divide among the ranks.
--- Differentiable; equal to lt.scaled_dot_product_attention on the whole sequence, but for
--- rounding, and for dropout, which draws other numbers.
---@param q Tensor [B, H, T / N, D] -> [B, H, T / N, E]
---@param k Tensor [B, H, T / N, D]
---@param v Tensor [B, H, T / N, E]
return function(q, k, v, options)
  local o, _ = config.check(options, OPTIONS, WHO)
  _, o.ranks = split.place(o.group)
  check_shapes(o, q, k, v)
  local mask = whole_mask(o.mask, o, k)
  local y = attend(heads_of_rank(q, o), heads_of_rank(k, o), heads_of_rank(v, o), mask,
    { causal = o.causal, scale = o.scale, dropout_p = o.dropout_p, enable_gqa = o.enable_gqa })
  return (positions_of_rank(y, o))
end
