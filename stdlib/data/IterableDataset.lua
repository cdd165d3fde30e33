-- stdlib/data/IterableDataset.lua: a data set that is read sequentially.
--
-- A subclass defines `iterate()`, which starts a pass and returns an iterator, as for a generic
-- `for`. It may define `__len`, and `state_dict()` with `load_state_dict(state)`, which are used to
-- resume in the middle of an epoch; without them, and with workers, the data is read again and used
-- samples are skipped.

local class = require "ltrain.core.class"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"

local IterableDataset = class.extend(nil, "IterableDataset")

IterableDataset.extend = class.extend

IterableDataset.__call = dataset_protocol.refuse_loop "for sample in ds:iterate() do"

--- To be overridden: returns an iterator over the samples.
function IterableDataset:iterate()
  errors.blame("%s: define iterate()", getmetatable(self).__name)
end

return IterableDataset
