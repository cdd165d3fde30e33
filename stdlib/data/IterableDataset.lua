-- stdlib/data/IterableDataset.lua: samples that come one after the other, with no position.
--
-- A subclass defines `iterate()`, which begins a pass and returns an iterator, as for a generic
-- `for`. It may define `__len`, and `state_dict()` with `load_state_dict(state)`: then a run that
-- goes on in mid-epoch asks it to go on; without them samples are replayed and dropped.

local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local samples = require "ltrain.data.loading.samples"

local IterableDataset = class.extend(nil, "IterableDataset")

IterableDataset.extend = class.extend

IterableDataset.__call = samples.refuse_loop "for sample in ds:iterate() do"

--- Overridden: an iterator over the samples.
function IterableDataset:iterate()
  errors.blame("%s: define iterate()", getmetatable(self).__name)
end

return IterableDataset
