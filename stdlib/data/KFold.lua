-- stdlib/data/KFold.lua: splits a data set for cross-validation: each sample is in the validation
-- part of one fold.
--
--   local lt = require "ltrain"
--   local data = lt.data.TensorDataset(lt.arange(6), lt.tensor{0, 0, 0, 0, 1, 1})
--   local folds = lt.data.KFold(2, {stratified = {0, 0, 0, 0, 1, 1}, seed = 1})
--   for fold, train, val in folds:split(data) do print(fold, #train, #val) end
--   -- prints: 1	3	3
--   -- prints: 2	3	3

local Subset = require "ltrain.data.Subset"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"

local KFold = class.extend(nil, "KFold")

local OPTIONS <const> = {
  shuffle = { type = "boolean", default = true, doc = "shuffle the samples before splitting" },
  seed = { type = "integer", doc = "seed of the shuffling; by default that of lt.seed" },
  stratified = { type = "tensor|table",
    doc = "labels, one per sample: all parts have about the same proportions of classes" },
  groups = { type = "tensor|table",
    doc = "groups, one per sample: no group is in two parts" },
}
local EPOCH <const> = 0xfffffffe -- apart from the orders of loaders and random_split

---@param n_splits integer
function KFold:init(n_splits, options)
  local o <const> = config.check(options, OPTIONS, "KFold")
  self._k = config.argument(n_splits, "integer", "KFold", "n_splits", { min = 2 })
  if o.stratified and o.groups then
    errors.blame "KFold: stratified and groups exclude each other"
  end
  self._o = o
end

-- Labels or groups as a list with one for each sample.
local function labels_of(value, n, name)
  local list <const> = c.is_tensor(value) and value:tolist() or value
  if #list ~= n then
    errors.blame("KFold: %s has %d values: the data set has %d samples", name, #list, n)
  end
  return list
end

-- Positions by label, in order of their labels' first samples.
local function by_label(order, labels)
  local lists, places = {}, {}
  for _, position in ipairs(order) do
    local label <const> = labels[position]
    if not places[label] then
      lists[#lists + 1] = {}
      places[label] = lists[#lists]
    end
    table.insert(places[label], position)
  end
  return lists
end

-- The part of each position: parts of equal size, dealt on from list to list.
local function deal(lists, k)
  local part, at = {}, 0
  for _, list in ipairs(lists) do
    for _, position in ipairs(list) do
      part[position] = at % k + 1
      at = at + 1
    end
  end
  return part
end

-- Whole groups, the largest first, each to the part that has the fewest samples.
local function deal_groups(lists, k)
  table.sort(lists, function(a, b)
    if #a ~= #b then return #a > #b end
    return a[1] < b[1]
  end)
  local part, sizes = {}, {}
  for p = 1, k do sizes[p] = 0 end
  for _, list in ipairs(lists) do
    local least = 1
    for p = 2, k do
      if sizes[p] < sizes[least] then least = p end
    end
    sizes[least] = sizes[least] + #list
    for _, position in ipairs(list) do part[position] = least end
  end
  return part
end

local function parts_of(self, n)
  local o <const>, k, order = self._o, self._k, {}
  local seed <const> = o.shuffle and (o.seed or c.runtime.rng_get().seed) or nil
  local drawn <const> = c.runtime.data.order(n, seed, EPOCH)
  for i = 1, n do order[i] = drawn:at(i) end
  if o.groups then
    local lists <const> = by_label(order, labels_of(o.groups, n, "groups"))
    if #lists < k then errors.blame("KFold: %d groups for %d folds", #lists, k) end
    return deal_groups(lists, k)
  end
  local lists = { order }
  if o.stratified then lists = by_label(order, labels_of(o.stratified, n, "stratified")) end
  return deal(lists, k)
end

--- Iterates over (fold, train, val): the number of the fold from 1, and its parts as Subsets in the
--- order of the data set.
function KFold:split(dataset)
  if not dataset_protocol.is_indexed(dataset) then
    errors.blame("KFold: dataset must have get(i) and a length: got %s", errors.show(dataset))
  end
  local n <const> = dataset_protocol.count(dataset, "KFold")
  if n < self._k then errors.blame("KFold: %d samples for %d folds", n, self._k) end
  local part <const>, fold = parts_of(self, n), 0
  return function()
    if fold == self._k then return nil end
    fold = fold + 1
    local train, val = {}, {}
    for i = 1, n do
      local list <const> = part[i] == fold and val or train
      list[#list + 1] = i
    end
    return fold, Subset(dataset, train), Subset(dataset, val)
  end
end

return KFold
