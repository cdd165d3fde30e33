-- stdlib/ops/embedding_bag.lua: lt.embedding_bag, sums, means or maxima of vectors by ids.
-- V number of ids (0..V-1), D size of a vector, B bags, N ids.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local who <const> = "embedding_bag"

local OPTIONS <const> = {
  offsets = { type = "tensor",
    doc = "[B]: where each bag begins in the ids [N], from 0; of ids [B, N] each row is a bag" },
  mode = { type = "string", default = "mean", choices = { "sum", "mean", "max" } },
  per_sample_weights = { type = "tensor", doc = "of mode 'sum': a factor for each id" },
  padding_idx = { type = "integer", doc = "id that counts for nothing and gets no gradient" },
  include_last_offset = { type = "boolean", default = false,
    doc = "whether a last offset says where the last bag ends" },
}

local function check(weight, ids, o)
  arguments.tensor(weight, who, "weight")
  arguments.tensor(ids, who, "ids")
  if weight.ndim ~= 2 or ids.ndim ~= 1 and ids.ndim ~= 2 then
    errors.blame("%s: needs weight [V, D] and ids [N] or [B, N]: got %s and %s", who,
      errors.show_shape(weight), errors.show_shape(ids))
  end
  if (ids.ndim == 1) ~= (o.offsets ~= nil) then
    errors.blame("%s: ids [N] need offsets, ids [B, N] take none: got ids %s%s", who,
      errors.show_shape(ids), o.offsets and " and offsets" or "")
  end
  if o.include_last_offset and not o.offsets then
    errors.blame("%s: include_last_offset is an option of offsets: ids are %s", who,
      errors.show_shape(ids))
  end
  local factors <const> = o.per_sample_weights
  if factors and o.mode ~= "sum" then
    errors.blame("%s: per_sample_weights are for mode 'sum': got mode '%s'", who, o.mode)
  end
  if factors and table.concat(factors.shape, " ") ~= table.concat(ids.shape, " ") then
    errors.blame("%s: per_sample_weights must have the shape of the ids: got %s and %s", who,
      errors.show_shape(factors), errors.show_shape(ids))
  end
  if o.padding_idx and (o.padding_idx < 0 or o.padding_idx >= weight.shape[1]) then
    errors.blame("%s: padding_idx must be an id in 0..%d: got %d", who, weight.shape[1] - 1,
      o.padding_idx)
  end
end

-- The bag of each of n ids, how many bags there are, and the size of the largest; nil on a device,
-- which nothing waits for.
local function bags_of(n, o)
  local offsets <const> = o.offsets
  if offsets.ndim ~= 1 or o.include_last_offset and offsets.shape[1] == 0 then
    errors.blame("%s: offsets must be a list [B]: got %s", who, errors.show_shape(offsets))
  end
  local count <const> = offsets.shape[1] - (o.include_last_offset and 1 or 0)
  local largest
  if offsets.device == "cpu" and offsets.shape[1] > 0 then
    local list <const> = offsets:tolist()
    if list[1] ~= 0 then
      errors.blame("%s: the first offset must be 0: got %s", who, errors.show(list[1]))
    end
    for k = 2, #list do
      if list[k] < list[k - 1] or list[k] > n then
        errors.blame("%s: offsets must ascend to at most %d: got %s after %s", who, n,
          errors.show(list[k]), errors.show(list[k - 1]))
      end
    end
    largest = 0
    for k = 1, count do largest = math.max(largest, (list[k + 1] or n) - list[k]) end
  end
  local begins <const> = count > 0 and offsets:narrow(1, 1, count) or offsets
  local whole <const> = { dtype = "i64", device = offsets.device }
  local begun <const> = c.zeros({ n + 1 }, whole)
    :index_add(begins, c.ones(begins.shape, whole), { dim = 1 }):cumsum(1)
  return begun:narrow(1, 1, n) - 1, count, largest
end

-- Of ids [N] in bags: ids [B, L], a bag in each row, and which places of it have one.
local function rows_of(ids, bags, count, largest, offsets)
  local places <const> = c.arange(ids.shape[1])
  local at <const> = bags * largest + places - offsets:to("i64"):index_select(bags, 1)
  local shape <const> = { count, largest }
  local rows <const> = c.zeros({ count * largest }, { dtype = ids.dtype }):scatter(at, ids, 1)
  local filled <const> = c.zeros({ count * largest }, { dtype = "bool" })
    :scatter(at, c.ones(ids.shape, { dtype = "bool" }), 1)
  return rows:view(shape), filled:view(shape)
end

-- Of vectors [N, D] that are in `bags` [N]; `present` [N]: which ids count, nil: all.
local function of_runs(vectors, present, bags, count, mode)
  local zeros <const> = c.zeros({ count, vectors.shape[2] },
    { dtype = vectors.dtype, device = vectors.device })
  if mode == "max" then
    local low <const> = present and vectors:masked_fill(~present:unsqueeze(2), -math.huge)
      or vectors
    local index <const> = bags:unsqueeze(2):expand(vectors.shape)
    local y <const> = zeros:scatter_reduce(index, low,
      { dim = 1, reduce = "amax", include_self = false })
    return y:masked_fill(y:eq(-math.huge), 0)
  end
  local y <const> = zeros:index_add(bags, vectors, { dim = 1 })
  if mode == "sum" then return y end
  local ones <const> = present and present:to(vectors.dtype)
    or c.ones({ vectors.shape[1] }, { dtype = vectors.dtype, device = vectors.device })
  local n <const> = zeros:select(2, 1):index_add(bags, ones, { dim = 1 }):clamp { min = 1 }
  return y / n:unsqueeze(2)
end

-- Of vectors [B, N, D].
local function of_rows(vectors, present, mode)
  if mode == "max" then
    if vectors.shape[2] == 0 then return vectors:sum(2) end
    local low <const> = present and vectors:masked_fill(~present:unsqueeze(3), -math.huge)
      or vectors
    local y <const> = (low:max(2))
    return present and y:masked_fill(y:eq(-math.huge), 0) or y
  end
  local y <const> = vectors:sum(2)
  if mode == "sum" then return y end
  if not present then return y / math.max(vectors.shape[2], 1) end
  return y / present:to(vectors.dtype):sum(2):clamp { min = 1 }:unsqueeze(2)
end

--- The sum, mean or maximum [B, D] of the vectors of each bag of ids, out of weight [V, D]. Ids are
--- [B, N], a bag in each row, or [N] with `offsets`. A bag without ids gives zeros. Maxima by
--- offsets have no ONNX form; sums and means by offsets have one of fixed sizes.
return function(weight, ids, options)
  local o <const> = config.check(options, OPTIONS, who)
  check(weight, ids, o)
  local bags, count, largest, filled
  if ids.ndim == 1 then bags, count, largest = bags_of(ids.shape[1], o) end
  -- The largest of scattered vectors needs them sorted; not so of rows, unless most are empty.
  if o.mode == "max" and largest and largest > 0 and count * largest <= 4 * ids.shape[1] then
    ids, filled = rows_of(ids, bags, count, largest, o.offsets)
  end
  local vectors = c.embedding(weight, ids, o.padding_idx)
  local present, factors = o.padding_idx and ids:ne(o.padding_idx), o.per_sample_weights
  if filled then present = present and present:logical_and(filled) or filled end
  if factors then vectors = vectors * factors:unsqueeze(-1) end
  if present and o.mode ~= "max" then
    vectors = vectors:masked_fill(~present:unsqueeze(-1), 0)
  end
  if ids.ndim == 2 then
    local y <const> = of_rows(vectors, present, o.mode)
    return y
  end
  local y <const> = of_runs(vectors, present, bags, count, o.mode)
  return y
end
