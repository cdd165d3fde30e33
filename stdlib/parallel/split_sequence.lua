--- stdlib/parallel/split_sequence.lua: lt.parallel.split_sequence, unsplit_sequence: a sequence
--- divided among the ranks of a group.
--
-- Under a causal mask the queries at the end of a sequence see more keys than those at its start.
-- So that all N ranks have as much to compute, the sequence is cut into 2 N chunks and rank r has
-- the chunks r and 2 N - 1 - r (zigzag order: Llama 3, Megatron-LM, PyTorch's context_parallel).
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local split = {}

local OPTIONS <const> = {
  group = { type = "object", doc = "the ranks that share the sequence; by default all" },
  balance = { type = "boolean", default = true, doc = "rank r of N has the chunks r and "
    .. "2 N - 1 - r of 2 N, as much work under a causal mask; false: chunk r of N" },
}

--- The chunks of rank `rank` of `ranks`, numbered from 0, and how many there are in all.
function split.chunks(rank, ranks, balance)
  if not balance or ranks == 1 then return { rank }, ranks end
  return { rank, 2 * ranks - 1 - rank }, 2 * ranks
end

-- The dim as a number from 1, and its size.
local function dim_of(x, dim, who)
  if not c.is_tensor(x) then errors.blame("%s: needs a tensor: got %s", who, errors.show(x)) end
  dim = config.argument(dim or 2, "integer", who, "dim", { min = 1, max = x.ndim })
  return dim, x.shape[dim]
end

-- This rank's number in a group (nil: of all), and how many ranks it has.
function split.place(group)
  if group then return group:rank(), group:world_size() end
  return c.dist.rank(), c.dist.size()
end

--- Returns this rank's part of x, which all ranks of the group have: of T positions along `dim` (2)
--- T / N. T must divide into 2 N chunks (with balance = false into N). Differentiable.
---@param x Tensor [.., T, ..] -> [.., T / N, ..]
function split.split_sequence(x, dim, options)
  local o, who <const> = config.check(options, OPTIONS, "split_sequence"), "split_sequence"
  local size
  dim, size = dim_of(x, dim, who)
  local rank, ranks = split.place(o.group)
  local own, count = split.chunks(rank, ranks, o.balance)
  if size % count ~= 0 then
    errors.blame("%s: %d positions (dim %d of %s) do not divide into %d chunks for %d ranks%s", who,
      size, dim, errors.show_shape(x), count, ranks, o.balance and ": pad the sequence" or "")
  end
  local each, list = size // count, {}
  for i, chunk in ipairs(own) do list[i] = x:narrow(dim, chunk * each + 1, each) end
  return c.cat(list, { dim = dim })
end

--- Returns the whole sequence from the parts of all ranks of the group. Differentiable.
---@param x Tensor [.., T / N, ..] -> [.., T, ..]
function split.unsplit_sequence(x, dim, options)
  local o, who <const> = config.check(options, OPTIONS, "unsplit_sequence"), "unsplit_sequence"
  local size
  dim, size = dim_of(x, dim, who)
  local _, ranks = split.place(o.group)
  local all, list = collectives.all_gather(x, { group = o.group }), {}
  for rank = 0, ranks - 1 do
    local own = split.chunks(rank, ranks, o.balance)
    if size % #own ~= 0 then
      errors.blame("%s: %d positions (dim %d of %s) are not two chunks", who, size, dim,
        errors.show_shape(x))
    end
    local part, each = all:select(1, rank + 1), size // #own
    for i, chunk in ipairs(own) do
      list[chunk + 1] = part:narrow(dim, (i - 1) * each + 1, each)
    end
  end
  return c.cat(list, { dim = dim })
end

return split
