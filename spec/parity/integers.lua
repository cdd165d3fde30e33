-- spec/parity/integers.lua: turns a random call of floats into one of integers, where PyTorch takes
-- them: of mixed dtypes where it promotes, u16 left out, which it does not.
local make = require "spec.parity.inputs"

local DTYPES <const> = {"u8", "i8", "i16", "i32", "i64"}

local function set(text)
  local names = {}
  for name in text:gmatch "%S+" do names[name] = true end
  return names
end

local MIXED <const> = set "where cat stack"
local ALIKE <const> = set [[
  neg abs sign square exp expm1 log log1p sqrt rsqrt reciprocal sin cos tanh erf sigmoid floor round
  relu isnan isfinite logical_not sum prod amax amin cumsum sort tril triu t transpose unsqueeze
  squeeze flatten flip movedim index_select gather scatter_add index_add masked_select embedding
  matmul view reshape expand permute select narrow slice clone]]
local DIVISORS <const> = set "div floor_divide remainder"

local function numbers(x, low)
  local value = make.tensor(x.shape, {dtype = x.dtype, integer = true, low = low, high = 3})
  x.values, x.special = value.values, nil
end

--- Changes the case, or leaves it. Beside u8 nothing is negative: PyTorch wraps a number of a
--- tensor of no dims before it computes, ltrain what comes out.
return function(case, op)
  if op.name == "logaddexp" then return end -- PyTorch takes floats alone
  local mixed = MIXED[op.name] or op.kind == "binary" or op.kind == "compare"
  if case.in_place or not (mixed or ALIKE[op.name]) then return end
  local dtype, low = make.one_of(DTYPES), -3
  if case.options.alpha then case.options.alpha = make.one_of{1, 2, 3} end
  local floats = {}
  for k, x in ipairs(case.inputs) do
    if x.dtype:find "f" then
      floats[k] = x
      x.dtype = mixed and make.one_of(DTYPES) or dtype
      if x.dtype == "u8" then low = 0 end
    end
  end
  for k = 1, #case.inputs do
    local x = floats[k]
    if x then numbers(x, k == 2 and (DIVISORS[op.name] and 1 or op.name == "pow" and 0) or low) end
  end
end
