-- stdlib/data/ConcatDataset.lua: concatenates data sets.
--
--   local lt = require "ltrain"
--   local both = lt.data.ConcatDataset({"a", "b"}, {"c"})
--   print(#both, both:get(3)) -- prints: 3	c

local Dataset = require "ltrain.data.Dataset"
local class = require "ltrain.core.class"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"

local ConcatDataset = Dataset:extend("ConcatDataset")

ConcatDataset.__index = dataset_protocol.by_position(ConcatDataset)

-- What is given: data sets, or one list of them, whose elements can be no samples.
local function list_of(first, ...)
  local is_list = select("#", ...) == 0 and type(first) == "table" and getmetatable(first) == nil
  return is_list and class.is_a(first[1], Dataset) and first or { first, ... }
end

---@param ... Dataset|table data sets, or one list of them
function ConcatDataset:init(...)
  self._parts, self._length, self.datasets = {}, 0, list_of(...)
  for k, dataset in elements.each(self.datasets) do
    if not dataset_protocol.is_indexed(dataset) then
      errors.blame("ConcatDataset: data set %d must have get(i) and a length: got %s", k,
        errors.show(dataset))
    end
    local n <const> = dataset_protocol.count(dataset, "ConcatDataset")
    self._parts[k] = { first = self._length, read = dataset_protocol.reader(dataset) }
    self._length = self._length + n
  end
  if #self._parts == 0 then errors.blame "ConcatDataset: there is no data set" end
end

function ConcatDataset:__len() return self._length end

function ConcatDataset:get(i)
  dataset_protocol.check_position(i, self._length, "ConcatDataset")
  local low, high = 1, #self._parts
  while low < high do -- the last part that begins before i
    local middle <const> = (low + high + 1) // 2
    if self._parts[middle].first < i then low = middle else high = middle - 1 end
  end
  local part <const> = self._parts[low]
  return part.read(i - part.first)
end

return ConcatDataset
