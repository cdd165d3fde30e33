-- spec/data/numbers.lua: the numbers 0 .. n - 1 as data sets.
local lt = require "ltrain"

local numbers = {}

--- Its batches are gathered in C.
function numbers.tensors(n)
  return lt.data.TensorDataset(lt.arange(n))
end

--- Lua reads it.
function numbers.list(n)
  local samples = {}
  for i = 1, n do samples[i] = { i - 1 } end
  return samples
end

return numbers
