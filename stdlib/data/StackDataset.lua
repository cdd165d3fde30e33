-- stdlib/data/StackDataset.lua: zips data sets of equal length: sample i contains sample i of each.
--
--   local lt = require "ltrain"
--   local data = lt.data.StackDataset{image = {"a.png", "b.png"}, label = {3, 1}}
--   print(data:get(2).image, data:get(2).label) -- prints: b.png	1

local Dataset = require "ltrain.data.Dataset"
local c = require "ltrain.c"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local StackDataset = Dataset:extend("StackDataset")

StackDataset.__index = dataset_protocol.by_position(StackDataset)

local function is_named(args)
  return #args == 1 and type(args[1]) == "table" and getmetatable(args[1]) == nil
    and type(next(args[1])) == "string"
end

-- A tensor as a data set: sample i is its row i.
local function rows_of(tensor)
  return setmetatable({ get = function(_, i) return tensor[i] end },
    { __len = function() return tensor.shape[1] end })
end

--- Samples are lists with one entry per data set, or tables with the names of the table that is
--- passed. A tensor is a data set of its rows.
---@param ... Dataset|Tensor|table
function StackDataset:init(...)
  local args = { ... }
  local names
  if is_named(args) then args, names = args[1], tree.keys(args[1]) end
  self._read = {}
  for k = 1, names and #names or elements.count(args) do
    local key <const> = names and names[k] or k
    local dataset <const> = c.is_tensor(args[key]) and rows_of(args[key]) or args[key]
    if not dataset_protocol.is_indexed(dataset) then
      errors.blame("StackDataset: %s must have get(i) and a length: got %s", key,
        errors.show(dataset))
    end
    local n <const> = dataset_protocol.count(dataset, "StackDataset")
    self._length = self._length or n
    if n ~= self._length then
      errors.blame("StackDataset: %s has %d samples, the others have %d", key, n, self._length)
    end
    self._read[key] = dataset_protocol.reader(dataset)
  end
  if not self._length then errors.blame "StackDataset: there is no data set" end
end

function StackDataset:__len() return self._length end

function StackDataset:get(i)
  dataset_protocol.check_position(i, self._length, "StackDataset")
  local sample = {}
  for key, read in next, self._read do sample[key] = read(i) end
  return sample
end

return StackDataset
