-- stdlib/data/TensorDataset.lua: a data set of the rows of tensors; batches are gathered in C.
--
--   local lt = require "ltrain"
--   local images, labels = lt.zeros(6, 2), lt.arange(6)
--   local pairs_of = lt.data.DataLoader(lt.data.TensorDataset(images, labels), {batch_size = 4})
--   for batch in pairs_of:batches() do print(batch[1].shape[1], batch[2]) end
--   local named = lt.data.TensorDataset{image = images, label = labels}
--   local loader = lt.data.DataLoader(named, {batch_size = 6})
--   for batch in loader:batches() do print(batch.label) end
--   -- prints: 4	tensor([0, 1, 2, 3])
--   -- prints: 2	tensor([4, 5])
--   -- prints: tensor([0, 1, 2, 3, 4, 5])

local Dataset = require "ltrain.data.Dataset"
local c = require "ltrain.c"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local TensorDataset = Dataset:extend("TensorDataset")

TensorDataset.__index = dataset_protocol.by_position(TensorDataset)

local function check(self, tensor, name)
  if not c.is_tensor(tensor) then
    errors.blame("TensorDataset: %s must be a tensor: got %s", name, errors.show(tensor))
  end
  local shape = tensor.shape
  if #shape == 0 then
    errors.blame("TensorDataset: %s has no dimension to count samples by", name)
  end
  self._length = self._length or shape[1]
  if shape[1] ~= self._length then
    errors.blame("TensorDataset: %s has %d samples, the others have %d: got %s", name, shape[1],
      self._length, errors.show(tensor))
  end
  local own = tensor:detach()
  local is_repeated = shape[1] > 1 and own:stride(1) == 0 and own[1]:is_contiguous()
  return is_repeated and own or own:contiguous()
end

--- The data set shares memory with the tensors, if these are contiguous, or one sample that is
--- expanded.
---@param ... Tensor [N, ...], or one table of them by name
function TensorDataset:init(...)
  local args = { ... }
  local first = args[1]
  self.tensors, self._divisors = {}, {}
  if type(first) == "table" and getmetatable(first) == nil then
    self.names = tree.keys(first)
    args = first
  end
  for i = 1, self.names and #self.names or elements.count(args) do
    local key <const> = self.names and self.names[i] or i
    local name = self.names and ("'%s'"):format(key) or ("tensor %d"):format(key)
    self.tensors[i] = check(self, args[key], name)
  end
  if #self.tensors == 0 then errors.blame("TensorDataset: give at least one tensor") end
end

--- Returns the same data set, with the u8 values of tensor `index` (a position or name) read as f32
--- and divided by `divisor`: u8 images need a quarter of the memory.
function TensorDataset:scaled(index, divisor)
  local at = index
  for i, name in ipairs(self.names or {}) do
    if name == index then at = i end
  end
  local tensor = self.tensors[at]
  if not tensor or tensor.dtype ~= "u8" then
    errors.blame("TensorDataset: only a u8 tensor can be scaled: %s is %s", errors.show(index),
      tensor and tensor.dtype or "not there")
  end
  self._divisors[at] = divisor
  return self
end

function TensorDataset:__len()
  return self._length
end

--- Converts rows to the structure of a batch.
function TensorDataset:form(rows)
  if not self.names then return rows end
  local named = {}
  for i, name in ipairs(self.names) do named[name] = rows[i] end
  return named
end

function TensorDataset:get(i)
  dataset_protocol.check_position(i, self._length, "TensorDataset")
  local rows = {}
  for k, tensor in ipairs(self.tensors) do
    local divisor = self._divisors[k]
    rows[k] = divisor and tensor[i]:to("f32") / divisor or tensor[i]
  end
  return self:form(rows)
end

--- For loaders: the tensors to gather rows from, divisors, the order of samples in them (nil:
--- unchanged), and the object whose `form` to call; nil if rows cannot be gathered.
function TensorDataset:columns()
  for _, tensor in ipairs(self.tensors) do
    if tensor.device ~= "cpu" then return nil end
  end
  return { tensors = self.tensors, divisors = self._divisors, owner = self }
end

return TensorDataset
