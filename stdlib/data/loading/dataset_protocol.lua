-- stdlib/data/loading/dataset_protocol.lua: recognises data sets (a tensor, a list, an object with
-- `get` and `#`, an iterable) and reads their samples.

local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local dataset_protocol = {}

--- More no data set has (see LT_SAMPLES_MAX): counts of samples can be multiplied.
dataset_protocol.MOST = 1 << 40

local function metamethod(value, name)
  local meta = getmetatable(value)
  return type(meta) == "table" and meta[name] or nil
end

--- Whether `value` gives samples one after the other only: an IterableDataset or a function.
function dataset_protocol.is_iterable(value)
  return type(value) == "function" or class.has_method(value, "iterate")
end

--- Whether `value` gives samples by position.
function dataset_protocol.is_indexed(value)
  if type(value) ~= "table" then return false end
  return type(value.get) == "function" or getmetatable(value) == nil
end

--- How many samples `dataset` says to have.
function dataset_protocol.count(dataset, where)
  local n = #dataset
  if math.type(n) ~= "integer" or n < 0 then
    errors.blame("%s: #dataset must be a count: got %s", where, errors.show(n))
  elseif n > dataset_protocol.MOST then
    errors.blame("%s: #dataset must be at most %d: got %d: for samples without an end give an "
      .. "IterableDataset or a function", where, dataset_protocol.MOST, n)
  end
  return n
end

--- The length of an iterable data set, nil when it has none.
function dataset_protocol.length_of_iterable(dataset)
  if type(dataset) == "table" and metamethod(dataset, "__len") then
    return dataset_protocol.count(dataset, "DataLoader")
  end
end

--- The `__index` of a data set of the library, whose class is `of`: `ds[i]`, which `ipairs` uses
--- too, is `ds:get(i)`, and nil behind the end.
function dataset_protocol.by_position(of)
  return function(dataset, key)
    if math.type(key) ~= "integer" then return of[key] end
    if key <= #dataset then return dataset:get(key) end
  end
end

--- The `__call` of data sets: of `for sample in ds do`.
function dataset_protocol.refuse_loop(text)
  return function(dataset)
    errors.blame("%s: loop with `%s`", getmetatable(dataset).__name, text)
  end
end

-- Several values of one sample are a list.
local function one(position, ...)
  local n = select("#", ...)
  if n > 1 then return { ... } end
  local sample = ...
  if sample == nil then errors.blame("DataLoader: get(%d) returned nothing", position) end
  return sample
end

--- A function from position to sample.
function dataset_protocol.reader(dataset)
  if type(dataset.get) ~= "function" then
    return function(position) return one(position, dataset[position]) end
  end
  return function(position) return one(position, dataset:get(position)) end
end

--- Raises unless `position` is in 1..n.
function dataset_protocol.check_position(position, n, where)
  if math.type(position) ~= "integer" or position < 1 or position > n then
    errors.blame("%s: there is no sample %s: positions are 1..%d", where, errors.show(position), n)
  end
end

return dataset_protocol
