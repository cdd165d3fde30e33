-- stdlib/data/BucketSampler.lua: batches of samples of similar length, which need little padding.
--
--   local lt = require "ltrain"
--   local lengths = {5, 1, 2, 9, 8, 1}
--   local sampler = lt.data.BucketSampler(lengths, 2, {shuffle = false})
--   for _, batch in ipairs(sampler:batches()) do print(table.concat(batch, " ")) end
--   -- prints: 2 6
--   -- prints: 3 1
--   -- prints: 5 4
--
-- The samples are shuffled, cut into pools of `pool` batches and sorted by length in each; the
-- batches of all pools are in random order. Pass it to a loader as `batch_sampler`.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local BucketSampler = class.extend(nil, "BucketSampler")

local OPTIONS <const> = {
  shuffle = { type = "boolean", default = true, doc = "different batches in each epoch" },
  pool = { type = "integer", default = 100, min = 1, doc = "number of batches in a pool" },
  drop_last = { type = "boolean", default = false, doc = "drop incomplete batches" },
}

--- `lengths`: the lengths of the samples, a list or a tensor [n].
---@param lengths Tensor|table
---@param batch_size integer
function BucketSampler:init(lengths, batch_size, options)
  for name, value in next, config.check(options, OPTIONS, "BucketSampler") do
    self["_" .. name] = value
  end
  config.argument(batch_size, "integer", "BucketSampler", "batch_size", { min = 1 })
  if c.is_tensor(lengths) then lengths = lengths:tolist() end
  if type(lengths) ~= "table" or type(lengths[1]) ~= "number" then
    errors.blame("BucketSampler: lengths must be a tensor [n] or a list: got %s",
      errors.show(lengths))
  end
  self._lengths, self._batch_size = lengths, batch_size
end

-- Positions in the order in which pools are cut.
local function order_of(self)
  local list = {}
  if self._shuffle then
    for k, at in ipairs(c.randperm(#self._lengths):tolist()) do list[k] = at + 1 end
  else
    for k = 1, #self._lengths do list[k] = k end
  end
  return list
end

-- Equal lengths stay in the order that they had.
local function sort_pool(lengths, pool)
  local place = {}
  for k, position in ipairs(pool) do place[position] = k end
  table.sort(pool, function(a, b)
    if lengths[a] ~= lengths[b] then return lengths[a] < lengths[b] end
    return place[a] < place[b]
  end)
end

local function shuffled(list)
  local out = {}
  for k, at in ipairs(c.randperm(#list):tolist()) do out[k] = list[at + 1] end
  return out
end

--- Returns the batches of an epoch, as lists of positions.
function BucketSampler:batches(_)
  local order <const>, size = order_of(self), self._batch_size
  local pool_size <const>, batches = self._shuffle and size * self._pool or #self._lengths, {}
  for first = 1, #order, pool_size do
    local pool <const> = table.move(order, first, math.min(first + pool_size - 1, #order), 1, {})
    sort_pool(self._lengths, pool)
    for at = 1, #pool, size do
      local last <const> = math.min(at + size - 1, #pool)
      if last - at + 1 == size or not self._drop_last then
        batches[#batches + 1] = table.move(pool, at, last, 1, {})
      end
    end
  end
  return self._shuffle and #batches > 0 and shuffled(batches) or batches
end

return BucketSampler
