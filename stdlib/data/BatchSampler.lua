-- stdlib/data/BatchSampler.lua: groups the positions of a sampler into batches.
--
--   local lt = require "ltrain"
--   local sampler = lt.data.BatchSampler({5, 3, 1, 2, 4}, 2)
--   for _, batch in ipairs(sampler:batches(0)) do print(table.concat(batch, " ")) end
--   -- prints: 5 3
--   -- prints: 1 2
--   -- prints: 4
--
-- Pass it to a loader as `batch_sampler`: on several ranks, whole batches are distributed. With the
-- loader's `sampler` and `batch_size`, each batch is split among the ranks.

local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local BatchSampler = class.extend(nil, "BatchSampler")

BatchSampler.__arguments = "sampler batch_size | drop_last"

local OPTIONS <const> = {
  drop_last = { type = "boolean", default = false, doc = "drop the last batch if incomplete" },
}

--- `sampler`: a list of positions, function(epoch) that returns one, or an object with
--- indices(epoch).
---@param sampler table|function
---@param batch_size integer
function BatchSampler:init(sampler, batch_size, options)
  local o <const> = config.check(options, OPTIONS, "BatchSampler")
  if type(sampler) ~= "function" and type(sampler) ~= "table" then
    errors.blame("BatchSampler: sampler must be a list of positions, a function or an object with "
      .. "indices(epoch): got %s", errors.show(sampler))
  end
  config.argument(batch_size, "integer", "BatchSampler", "batch_size", { min = 1 })
  self._sampler, self._batch_size, self._drop_last = sampler, batch_size, o.drop_last
end

local function positions_of(sampler, epoch)
  if class.has_method(sampler, "set_epoch") then sampler:set_epoch(epoch) end
  if class.has_method(sampler, "indices") then return sampler:indices(epoch) end
  if type(sampler) == "function" then return sampler(epoch) end
  return sampler
end

--- Returns the batches of an epoch, as lists of positions.
---@param epoch integer
function BatchSampler:batches(epoch)
  local list <const>, size, batches = positions_of(self._sampler, epoch), self._batch_size, {}
  if type(list) ~= "table" then
    errors.blame("BatchSampler: the sampler must give a list of positions: got %s",
      errors.show(list))
  end
  for first = 1, #list, size do
    local last <const> = math.min(first + size - 1, #list)
    if last - first + 1 == size or not self._drop_last then
      batches[#batches + 1] = table.move(list, first, last, 1, {})
    end
  end
  return batches
end

return BatchSampler
