--- stdlib/data/get_worker_info.lua: returns information about the current worker of a DataLoader.
--
--   local lt = require "ltrain"
--   local data = lt.data.Dataset:extend("Ids")
--   function data:__len() return 4 end
--   function data:get() return lt.data.get_worker_info().id end
--   for batch in lt.data.DataLoader(data(), {num_workers = 2}):batches() do print(batch) end
--   -- prints: tensor([0])
--   -- prints: tensor([1])
--   -- prints: tensor([0])
--   -- prints: tensor([1])

local workers = require "ltrain.data.loading.workers"

--- Returns {id =, num_workers =, seed =, dataset =} in a worker, id from 0; nil elsewhere. An
--- iterable data set that calls it before its first sample is expected to shard its samples itself.
return function() return workers.info() end
