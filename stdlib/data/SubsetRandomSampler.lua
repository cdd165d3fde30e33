-- stdlib/data/SubsetRandomSampler.lua: draws the given positions of a data set in a new random
-- order in each epoch.
--
--   local lt = require "ltrain"
--   local data = lt.data.TensorDataset(lt.arange(10))
--   local sampler = lt.data.SubsetRandomSampler{1, 3, 5}
--   local seen = {}
--   for batch in lt.data.DataLoader(data, {sampler = sampler}):batches() do
--     seen[#seen + 1] = batch[1]:item()
--   end
--   table.sort(seen)
--   print(table.concat(seen, " ")) -- prints: 0 2 4

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local SubsetRandomSampler = class.extend(nil, "SubsetRandomSampler")

SubsetRandomSampler.__arguments = "indices"

--- `positions`: a list of positions in 1..#dataset.
---@param positions table
function SubsetRandomSampler:init(positions)
  if type(positions) ~= "table" or #positions == 0 then
    errors.blame("SubsetRandomSampler: positions must be a list: got %s", errors.show(positions))
  end
  self._positions = table.move(positions, 1, #positions, 1, {})
end

function SubsetRandomSampler:__len() return #self._positions end

--- Returns the positions of an epoch.
function SubsetRandomSampler:indices(_)
  local list = {}
  for k, at in ipairs(c.randperm(#self._positions):tolist()) do
    list[k] = self._positions[at + 1]
  end
  return list
end

return SubsetRandomSampler
