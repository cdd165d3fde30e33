--- stdlib/apps/check/checks/data_overlap.lua: samples that are trained on and validated with.
local batch_samples = require "ltrain.apps.check.batch_samples"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local dataset_tensors = require "ltrain.apps.check.dataset_tensors"
local is_float = require "ltrain.core.is_float"

local MOST <const> = 20000 -- rows that are compared
local SMALLEST <const> = 4 -- numbers of a sample, and samples, that do not agree by chance
local DISTINCT <const> = 0.99 -- of samples

-- A data set as the one that it is cut from, and the positions in it (nil: all).
local function root_of(dataset)
  if type(dataset) ~= "table" then return nil end
  local order = rawget(dataset, "_order")
  if order and type(dataset.dataset) == "table" and not dataset.dataset._order then
    return dataset.dataset, order
  end
  return dataset, nil
end

-- How many positions two orders have in common.
local function common(a, b, n)
  if not a and not b then return n end
  if not a or not b then return #(a or b) end
  local seen, count = {}, 0
  for i = 1, #a do seen[a:at(i)] = true end
  for i = 1, #b do count = count + (seen[b:at(i)] and 1 or 0) end
  return count
end

local function numbers_of(tensor) return tensor:numel() // math.max(tensor.shape[1], 1) end

-- The first MOST samples of a data set of tensors, in its order: a list of columns, of which the
-- first is enough where it has numbers that do not agree by chance; nil for others.
local function samples_of(loader)
  local list = dataset_tensors.of(loader, true)
  if not list then return nil end
  local first = list[1].tensor
  local found = { n = MOST, is_telling = is_float(first.dtype) and numbers_of(first) >= SMALLEST }
  for i = 1, found.is_telling and 1 or #list do
    found[i] = dataset_tensors.rows(list, list[i])
    found.n = math.min(found.n, found[i].shape[1])
  end
  return found
end

-- One number for the values of a sample.
local function key_of(samples, i)
  local key = 0
  for _, column in ipairs(samples) do
    key = key * 31 + c.io.crc32(column[i]:contiguous())
  end
  return key
end

local function equal_samples(a, i, b, k)
  for n, column in ipairs(a) do
    if not column[i]:equal(b[n][k]) then return false end
  end
  return true
end

local function same_columns(a, b)
  if #a ~= #b then return false end
  for i, column in ipairs(a) do
    if column.dtype ~= b[i].dtype or numbers_of(column) ~= numbers_of(b[i]) then return false end
  end
  return true
end

-- How many samples of `val` are samples of `train` too. Samples of few numbers may be the same by
-- chance: there most of them are to be, and those of the training hardly ever the same.
local function equal_rows(train, val)
  if train.n == 0 or val.n == 0 or not same_columns(train, val) then return 0 end
  local seen, distinct, count = {}, 0, 0
  for i = 1, train.n do
    local key = key_of(train, i)
    distinct = distinct + (seen[key] and 0 or 1)
    seen[key] = i
  end
  for i = 1, val.n do
    local at = seen[key_of(val, i)]
    if at and equal_samples(train, at, val, i) then count = count + 1 end
  end
  if train.is_telling then return count end
  return distinct >= DISTINCT * train.n and count >= math.max(SMALLEST, val.n // 2) and count or 0
end

-- Whether the first samples of two data sets of a script's own are the same, one by one.
local function same_beginning(a, b)
  if not class.has_method(a, "get") or not class.has_method(b, "get") or #b < SMALLEST
    or #a < SMALLEST then
    return false
  end
  local before, differ
  for i = 1, SMALLEST do
    local one, two = batch_samples.leaves(a:get(i)), batch_samples.leaves(b:get(i))
    if #one == 0 or #one ~= #two then return false end
    for k, leaf in ipairs(one) do
      local x, y = leaf.value, two[k].value
      if x.dtype ~= y.dtype or #x.shape ~= #y.shape or not x:equal(y) then return false end
    end
    differ = differ or before and not one[1].value:equal(before)
    before = is_float(one[1].value.dtype) and one[1].value:numel() >= SMALLEST and one[1].value
    if not before then return false end
  end
  return differ
end

-- What two loaders have in common, as a text; nil for nothing.
local function shared(train, val)
  local a, own = root_of(train.dataset)
  local b, other = root_of(val.dataset)
  if not a or not b then return nil end
  local same, count = a == b, 0
  local of_train, of_val = not same and samples_of(train), not same and samples_of(val)
  if same then
    count = common(own, other, #val.dataset)
  elseif of_train and of_val then
    count = equal_rows(of_train, of_val)
  elseif not of_train and not of_val and same_beginning(train.dataset, val.dataset) then
    return ("the first %d validation samples are the first training samples"):format(SMALLEST)
  end
  if count == 0 then return nil end
  return ("%d of the %d validation samples are training samples too"):format(count, #val.dataset)
end

return {
  on_data = function(context, state)
    local train = state.data.train.loader
    if type(train) ~= "table" or not rawget(train, "dataset") then return end
    for _, source in ipairs(state.data.val or {}) do
      local val = source.loader
      -- One loader for both is what the script says; its copy reads the same data set.
      local given = state.fit_args.train ~= nil and state.fit_args.train == state.fit_args.val
      if not given and type(val) == "table" and rawget(val, "dataset") then
        local text = shared(train, val)
        if text then
          context.report:warn("overlap", dataset_tensors.line_of(context, "DataLoader"),
            text .. ": the validation says nothing of new data",
            "cut the data once: lt.data.random_split(dataset, {n, m})")
        end
      end
    end
  end,
}
