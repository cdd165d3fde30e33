--- stdlib/apps/check/compare.lua: compares tensors of two experiments, and finds the batch dim.
local c = require "ltrain.c"
local is_float = require "ltrain.core.is_float"

local compare = {}

local RELATIVE <const>, ABSOLUTE <const> = 1e-4, 1e-6

local function same_shape(a, b)
  local sizes, others = a.shape, b.shape
  if #sizes ~= #others then return false end
  for i = 1, #sizes do
    if sizes[i] ~= others[i] then return false end
  end
  return true
end

--- Whether two tensors hold the same values, but for rounding; nil where their shapes differ.
function compare.same(a, b)
  if not same_shape(a, b) or a.dtype ~= b.dtype then return nil end
  if a:numel() == 0 or rawequal(a, b) then return true end
  if not is_float(a.dtype) then return a:equal(b) end
  return c.allclose(a, b, { rtol = RELATIVE, atol = ABSOLUTE, equal_nan = true })
end

--- The dim that counts samples, and how many rows of it are one: of a tensor in a run with two
--- samples, and the same of one with three. nil where none or several do.
function compare.batch_dim(two, three)
  local sizes, others, dim = two.shape, three.shape, nil
  if #sizes ~= #others then return nil end
  for i = 1, #sizes do
    if sizes[i] ~= others[i] then
      if dim or sizes[i] * 3 ~= others[i] * 2 then return nil end
      dim = i
    end
  end
  if not dim then return nil end
  local each = sizes[dim] // 2
  if dim > 1 and each > 1 then return nil end -- rows of samples may alternate
  return dim, each
end

--- The part of a tensor that is one sample's.
function compare.part(tensor, dim, each, sample)
  return tensor:narrow(dim, 1 + (sample - 1) * each, each)
end

return compare
