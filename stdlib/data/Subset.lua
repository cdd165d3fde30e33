-- stdlib/data/Subset.lua: a subset of a data set, by positions.

local Dataset = require "ltrain.data.Dataset"
local c = require "ltrain.c"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"

local data = c.runtime.data

local Subset = Dataset:extend("Subset")

Subset.__arguments = "dataset indices"

Subset.__index = dataset_protocol.by_position(Subset)

--- `positions`: a list of positions in 1..#dataset.
function Subset:init(dataset, positions)
  if not dataset_protocol.is_indexed(dataset) then
    errors.blame("Subset: dataset must have get(i) and a length: got %s", errors.show(dataset))
  end
  self.dataset = dataset
  if type(positions) == "table" then
    positions = data.order_of(positions, dataset_protocol.count(dataset, "Subset"), "Subset")
  elseif c.is_tensor(positions) then
    errors.blame("Subset: positions must be a list that counts from 1: got a tensor %s, whose "
      .. "contents count from 0: give (t + 1):tolist()", errors.show_shape(positions))
  elseif type(positions) ~= "userdata" then
    errors.blame("Subset: positions must be a list: got %s", errors.show(positions))
  end
  self._order, self._read = positions, dataset_protocol.reader(dataset)
end

function Subset:__len()
  return #self._order
end

function Subset:get(i)
  dataset_protocol.check_position(i, #self._order, "Subset")
  return self._read(self._order:at(i))
end

-- What C reads of the whole, of some of its rows.
local function part(self, name)
  local of = self.dataset[name]
  local whole = type(of) == "function" and of(self.dataset)
  if not whole then return nil end
  whole.map = whole.map and self._order:through(whole.map) or self._order
  return whole
end

function Subset:columns()
  local columns = part(self, "columns")
  return columns
end

--- For loaders: as Images:images.
function Subset:images()
  local images = part(self, "images")
  return images
end

return Subset
