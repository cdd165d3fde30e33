-- stdlib/data/RandomSampler.lua: draws random positions in each epoch.
--
--   local lt = require "ltrain"
--   local data = lt.data.TensorDataset(lt.arange(100))
--   local sampler = lt.data.RandomSampler(data, {num_samples = 32})
--   local loader = lt.data.DataLoader(data, {batch_size = 8, sampler = sampler})
--   print(#loader) -- prints: 4
--
-- For an epoch of another length than the data set; otherwise the loader's `shuffle = true` is
-- enough.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"

local RandomSampler = class.extend(nil, "RandomSampler")

RandomSampler.__arguments = "data_source | replacement num_samples"

local OPTIONS <const> = {
  replacement = { type = "boolean", default = false, doc = "draw with replacement" },
  num_samples = { type = "integer", min = 1, doc = "number of samples per epoch; by default all" },
}

---@param dataset Dataset|table
function RandomSampler:init(dataset, options)
  local o <const> = config.check(options, OPTIONS, "RandomSampler")
  if not dataset_protocol.is_indexed(dataset) then
    errors.blame("RandomSampler: dataset must have get(i) and a length: got %s",
      errors.show(dataset))
  end
  self._n, self._replacement = dataset_protocol.count(dataset, "RandomSampler"), o.replacement
  self._count = o.num_samples or self._n
end

function RandomSampler:__len() return self._count end

--- Returns the positions of an epoch. Without `replacement` no sample is repeated before all have
--- been drawn.
function RandomSampler:indices(_)
  if self._replacement then return (c.randint(1, self._n + 1, { self._count })):tolist() end
  local list = {}
  while #list < self._count do
    local round <const> = (c.randperm(self._n) + 1):tolist()
    table.move(round, 1, math.min(#round, self._count - #list), #list + 1, list)
  end
  return list
end

return RandomSampler
