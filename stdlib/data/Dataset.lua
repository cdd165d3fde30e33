-- stdlib/data/Dataset.lua: a data set whose samples have positions: `#ds` and `ds:get(i)`.
--
-- A subclass defines `get(i)`, i in 1..#ds, and `__len`. A loader accepts any object with these two
-- methods, and plain lists of samples.

local class = require "ltrain.core.class"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"

local Dataset = class.extend(nil, "Dataset")

Dataset.extend = class.extend

Dataset.__call = dataset_protocol.refuse_loop "for i = 1, #ds do local sample = ds:get(i) ... end"

--- To be overridden: returns the sample at position i, one value or several.
function Dataset:get(i)
  errors.blame("%s: define get(i)", getmetatable(self).__name)
end

--- To be overridden: the number of samples.
function Dataset:__len()
  errors.blame("%s: define __len()", getmetatable(self).__name)
end

return Dataset
