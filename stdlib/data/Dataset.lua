-- stdlib/data/Dataset.lua: samples that can be asked for by position: `#ds` and `ds:get(i)`.
--
-- A subclass defines `get(i)`, i in 1..#ds, and `__len`. Anything else with these two serves a
-- loader as well, and so does a plain list of samples.

local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local samples = require "ltrain.data.loading.samples"

local Dataset = class.extend(nil, "Dataset")

Dataset.extend = class.extend

Dataset.__call = samples.refuse_loop "for i = 1, #ds do local sample = ds:get(i) ... end"

--- Overridden: the sample at position i, one value or several.
function Dataset:get(i)
  errors.blame("%s: define get(i)", getmetatable(self).__name)
end

--- Overridden: how many samples there are.
function Dataset:__len()
  errors.blame("%s: define __len()", getmetatable(self).__name)
end

return Dataset
