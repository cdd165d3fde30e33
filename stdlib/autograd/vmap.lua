--- stdlib/autograd/vmap.lua: lt.vmap, vectorizes a function of one sample over a batch.
--
--   local lt = require "ltrain"
--   local dot = lt.vmap(function(a, b) return (a * b):sum() end)
--   print(dot(lt.ones(3, 4), lt.ones(3, 4)))
--   -- prints: tensor([4., 4., 4.])
--
-- It calls the function once for each sample, in a loop, and stacks the results: it works with any
-- function, but batched operations are faster.
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local nested_tensors = require "ltrain.autograd.nested_tensors"

local ROWS <const> = config.signature {
  { "in_dims", type = "integer|table", default = 1,
    doc = "batch dim: one for all arguments, or a list with one for each; false for arguments "
      .. "without; a table for an argument that is a table" },
  { "out_dims", type = "integer|table", default = 1,
    doc = "position of the batch dim in the results: one for all, or a list" },
  { "randomness", type = "string", default = "error", choices = { "error", "different", "same" },
    doc = "random numbers in the calls: an error, different in each, or the same in all" },
  { "chunk_size", type = "integer", min = 1, doc = "no effect: samples are processed one by one" },
}

local function place(x, dim, k)
  if not c.is_tensor(x) then
    errors.blame("vmap: argument %d is %s, which has no dims: write false for it in in_dims", k,
      errors.show(x))
  end
  local at = math.type(dim) == "integer" and dim < 0 and x.ndim + dim + 1 or dim
  if math.type(at) ~= "integer" or at < 1 or at > x.ndim then
    errors.blame("vmap: in_dims: argument %d is %s: it has no dim %s", k, errors.show_shape(x),
      errors.show(dim))
  end
  return at
end

local function dims_of(in_dims, k)
  if type(in_dims) ~= "table" then return in_dims end
  if in_dims[k] == nil then
    errors.blame("vmap: in_dims has no dim for argument %d: false where it has no batch", k)
  end
  return in_dims[k]
end

-- The size of the batch.
local function size_of(args, in_dims)
  local size
  for k = 1, args.n do
    nested_tensors.map(args[k], function(x, dim)
      if not dim then return end
      local at = place(x, dim, k)
      size = size or x.shape[at]
      if x.shape[at] ~= size then
        errors.blame("vmap: arguments have batches of %d and of %d samples", size, x.shape[at])
      end
    end, dims_of(in_dims, k))
  end
  if not size or size == 0 then
    errors.blame("vmap: %s", size and "the batch has no samples"
      or "no argument has a batch: in_dims is false for all")
  end
  return size
end

local function sample(args, in_dims, i)
  local given = {}
  for k = 1, args.n do
    given[k] = nested_tensors.map(args[k], function(x, dim)
      if not dim then return x end
      return x:select(place(x, dim, k), i)
    end, dims_of(in_dims, k))
  end
  return given
end

-- Results of the samples, a list of trees that are alike, as one tree of stacked tensors.
local function stacked(list, out_dims)
  local columns = {}
  for i, value in ipairs(list) do
    for k, x in ipairs(nested_tensors.leaves(value)) do
      if not c.is_tensor(x) then
        errors.blame("vmap: the function must return tensors: got %s", errors.show(x))
      end
      columns[k] = columns[k] or {}
      columns[k][i] = x
    end
  end
  local k = 0
  return nested_tensors.map(list[1], function(_, dim)
    k = k + 1
    return c.stack(columns[k], { dim = dim })
  end, out_dims)
end

-- Random numbers of one call after another, as `randomness` says.
local function watch(randomness)
  local start = c.runtime.rng_get()
  return function()
    local now = c.runtime.rng_get()
    if randomness == "error" and (now.ordinal ~= start.ordinal or now.batch ~= start.batch) then
      errors.blame("vmap: the function draws random numbers: write randomness = 'different' or "
        .. "'same'")
    end
    return randomness == "same" and c.runtime.rng_set(start)
  end
end

--- lt.vmap(func, in_dims, out_dims, randomness): a function that calls `func` for each sample of
--- its arguments and stacks the results. As torch.vmap; dims count from 1, and false replaces None.
return function(func, ...)
  local o = config.arguments("vmap", ROWS, ...)
  config.argument(func, "function", "vmap", "func")
  return function(...)
    local args = table.pack(...)
    local size, list, n = size_of(args, o.in_dims), {}, 1
    local next_call = watch(o.randomness)
    for i = 1, size do
      if i > 1 then next_call() end
      local results = table.pack(func(table.unpack(sample(args, o.in_dims, i), 1, args.n)))
      list[i], n = nested_tensors.result(results, results.n), results.n
    end
    if o.randomness == "error" then next_call() end
    local made = stacked(list, o.out_dims)
    if n == 1 then return made end
    return table.unpack(made, 1, n)
  end
end
