-- stdlib/ops/embedding_bag.lua: lt.embedding_bag, sums, means or maxima of vectors by ids.
-- V number of ids (0..V-1), D size of a vector, B bags, N ids.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local who <const> = "embedding_bag"
local summed <const> = c.runtime.operation(who, who)

local OPTIONS <const> = {
  offsets = { type = "tensor",
    doc = "[B]: start of each bag in the ids [N], from 0; in ids [B, N] each row is a bag" },
  mode = { type = "string", default = "mean", choices = { "sum", "mean", "max" } },
  per_sample_weights = { type = "tensor", doc = "for mode 'sum': a factor for each id" },
  padding_idx = { type = "integer", doc = "id that is ignored and gets no gradient" },
  include_last_offset = { type = "boolean", default = false,
    doc = "offsets contain the end of the last bag as an additional element" },
}

-- The options; offsets may stand before them.
local function options_of(offsets, options)
  if options == nil and not c.is_tensor(offsets) then return config.check(offsets, OPTIONS, who) end
  local o <const> = config.check(options, OPTIONS, who)
  if offsets ~= nil and o.offsets ~= nil then
    errors.blame("%s: offsets is given by place and by name", who)
  end
  o.offsets = o.offsets or offsets and config.value(offsets, OPTIONS.offsets, who, "offsets")
  return o
end

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

-- Whether offsets on the CPU begin at 0 and ascend to at most n.
local function fit(offsets, n)
  local count <const> = offsets.shape[1]
  local behind <const> = offsets:narrow(1, 2, count - 1)
  return offsets[1]:item() == 0 and offsets[count]:item() <= n
    and behind:ge(offsets:narrow(1, 1, count - 1)):all():item()
end

-- Where each bag begins among n ids. What is wrong on a device is reported there, without a wait.
local function begins_of(n, o)
  local offsets <const> = o.offsets
  if offsets.ndim ~= 1 or o.include_last_offset and offsets.shape[1] == 0 then
    errors.blame("%s: offsets must be a list [B]: got %s", who, errors.show_shape(offsets))
  end
  if offsets.device == "cpu" and offsets.shape[1] > 0 and not fit(offsets, n) then
    local list <const> = offsets:tolist()
    if list[1] ~= 0 then
      errors.blame("%s: the first offset must be 0: got %s", who, errors.show(list[1]))
    end
    for k = 1, #list do
      if list[k] < (list[k - 1] or 0) or list[k] > n then
        errors.blame("%s: offsets must ascend to at most %d: got %s after %s", who, n,
          errors.show(list[k]), errors.show(list[k - 1]))
      end
    end
  end
  return o.include_last_offset and offsets:narrow(1, 1, offsets.shape[1] - 1) or offsets
end

-- The bag of each of n ids, and the size of the largest; nil on a device, which nothing waits for.
local function bags_of(n, begins)
  local largest
  if begins.device == "cpu" and begins.shape[1] > 0 then
    local list <const> = begins:tolist()
    largest = 0
    for k = 1, #list do largest = math.max(largest, (list[k + 1] or n) - list[k]) end
  end
  local whole <const> = { dtype = "i64", device = begins.device }
  local begun <const> = c.zeros({ n + 1 }, whole)
    :index_add(begins, c.ones(begins.shape, whole), { dim = 1 }):cumsum(1)
  return begun:narrow(1, 1, n) - 1, largest
end

-- Of ids [N] in bags: ids [B, L], a bag in each row, and which places of it have one.
local function rows_of(ids, bags, count, largest, offsets)
  local places <const> = c.arange(ids.shape[1])
  local at <const> = bags * largest + places - offsets:to("i64"):index_select(1, bags)
  local shape <const> = { count, largest }
  local rows <const> = c.zeros({ count * largest }, { dtype = ids.dtype }):scatter(1, at, ids)
  local filled <const> = c.zeros({ count * largest }, { dtype = "bool" })
    :scatter(1, at, c.ones(ids.shape, { dtype = "bool" }))
  return rows:view(shape), filled:view(shape)
end

-- The largest of each bag of vectors [N, D] that are in `bags` [N].
local function of_runs(vectors, bags, count)
  local zeros <const> = c.zeros({ count, vectors.shape[2] },
    { dtype = vectors.dtype, device = vectors.device })
  return zeros:scatter_reduce(bags:unsqueeze(2):expand(vectors.shape), vectors,
    { dim = 1, reduce = "amax", include_self = false })
end

local function maxima(weight, ids, begins, padding_idx)
  local bags, largest, filled
  local count <const> = begins and begins.shape[1] or ids.shape[1]
  if begins then bags, largest = bags_of(ids.shape[1], begins) end
  -- The largest of scattered vectors needs them sorted; not so of rows, unless most are empty.
  if largest and largest > 0 and count * largest <= 4 * ids.shape[1] then
    ids, filled = rows_of(ids, bags, count, largest, begins)
  end
  local vectors = c.embedding(weight, ids, padding_idx)
  local present = padding_idx and ids:ne(padding_idx)
  if filled then present = present and present:logical_and(filled) or filled end
  if present then vectors = vectors:masked_fill(~present:unsqueeze(-1), -math.huge) end
  if ids.ndim == 2 and ids.shape[2] == 0 then return vectors:sum(2) end
  local y <const> = ids.ndim == 2 and (vectors:max(2)) or of_runs(vectors, bags, count)
  return present and y:masked_fill(y:eq(-math.huge), 0) or y
end

--- The sum, mean or maximum [B, D] of the rows of weight [V, D] for each bag of ids. Ids are [B,
--- N], one bag per row, or [N] with `offsets`. An empty bag gives zeros. In ONNX files, maxima with
--- offsets are not supported, and sums and means with offsets have fixed sizes. The ids may come
--- first, as in torch.nn.functional.
return function(weight, ids, offsets, options)
  local o <const> = options_of(offsets, options)
  if c.is_tensor(weight) and c.is_tensor(ids) and not arguments.is_float(weight)
    and arguments.is_float(ids) then
    weight, ids = ids, weight
  end
  check(weight, ids, o)
  local begins <const> = ids.ndim == 1 and begins_of(ids.shape[1], o) or nil
  if o.mode == "max" then
    local y <const> = maxima(weight, ids, begins, o.padding_idx)
    return y
  end
  local y <const> = summed(weight, ids, begins, o.per_sample_weights,
    { mean = o.mode == "mean", padding_idx = o.padding_idx })
  return y
end
