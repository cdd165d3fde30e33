--- stdlib/dist/reducer.lua: the gradients of all ranks, added.
--
-- One header says what each rank brings: its weight (samples over the nominal batch), its flags and
-- which parameters have a gradient. Then the gradients travel packed, a buffer for each dtype; a
-- parameter that no rank used keeps `grad = nil`. Reductions are plain sums, in the transport's
-- fixed order: weights went into the seed of backward.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"

local reducer = {}

-- Weight, flags, then 1 for each parameter with a gradient.
local function header_of(parameters, weight, flags)
  local numbers = { weight, table.unpack(flags) }
  for i, parameter in ipairs(parameters) do
    numbers[1 + #flags + i] = parameter.grad and 1 or 0
  end
  return c.tensor(numbers, { dtype = "f64" })
end

-- Lists of gradients by dtype, in the order of the parameters: the same on every rank.
local function by_dtype(parameters, sums, first)
  local buckets, order = {}, {}
  for i, parameter in ipairs(parameters) do
    if sums[first + i] > 0 then
      local bucket = buckets[parameter.dtype]
      if not bucket then
        bucket = {}
        buckets[parameter.dtype], order[#order + 1] = bucket, bucket
      end
      if not parameter.grad then parameter.grad = c.zeros_like(parameter) end
      bucket[#bucket + 1] = parameter.grad
    end
  end
  return order
end

local function reduce_bucket(grads)
  local flat = {}
  for i, grad in ipairs(grads) do flat[i] = grad:reshape { grad:numel() } end
  local sum = collectives.all_reduce_(c.cat(flat, 1))
  local at = 1
  for _, grad in ipairs(grads) do
    grad:copy_(sum:narrow(1, at, grad:numel()):reshape(grad.shape))
    at = at + grad:numel()
  end
end

--- Adds the gradients of a list of parameters over all ranks, in place. Returns the sum of the
--- ranks' weights, and the sums of their flags (a list of numbers). When no rank has any weight the
--- gradients are left alone.
function reducer.reduce(parameters, weight, flags)
  local _ <close> = c.no_grad()
  local sums = collectives.all_reduce(header_of(parameters, weight, flags)):tolist()
  local told = table.move(sums, 2, 1 + #flags, 1, {})
  if sums[1] > 0 then
    for _, grads in ipairs(by_dtype(parameters, sums, 1 + #flags)) do reduce_bucket(grads) end
  end
  return sums[1], told
end

return reducer
