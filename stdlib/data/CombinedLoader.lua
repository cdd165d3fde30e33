-- stdlib/data/CombinedLoader.lua: combines several loaders into one.
--
--   local lt = require "ltrain"
--   local function loader(n, size)
--     return lt.data.DataLoader(lt.data.TensorDataset{x = lt.arange(n)}, {batch_size = size})
--   end
--   local both = lt.data.CombinedLoader({a = loader(6, 2), b = loader(3, 3)}, "max_size_cycle")
--   for batch, i in both:batches() do print(i, batch.a.x, batch.b.x) end
--   -- prints: 0	tensor([0, 1])	tensor([0, 1, 2])
--   -- prints: 1	tensor([2, 3])	tensor([0, 1, 2])
--   -- prints: 2	tensor([4, 5])	tensor([0, 1, 2])
--
-- A batch is a table with a batch of each loader, nested like the table of loaders. A function that
-- returns an iterator, or an IterableDataset, is a loader of the batches that it yields. The modes
-- are Lightning's: "min_size" ends with the shortest loader; "max_size" with the longest, with nil
-- for exhausted loaders; "max_size_cycle" restarts exhausted loaders, each time in another order;
-- "sequential" yields the batches of one loader after the other.

local DataLoader = require "ltrain.data.DataLoader"
local Rounds = require "ltrain.data.loading.loader_cycles"
local class = require "ltrain.core.class"
local combined_position = require "ltrain.data.loading.combined_position"
local config = require "ltrain.core.config"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local has_method <const> = class.has_method

local CombinedLoader = class.extend(nil, "CombinedLoader")

CombinedLoader.__arguments = "loaders | mode"

local OPTIONS <const> = {
  mode = { type = "string", default = "min_size",
    choices = { "min_size", "max_size", "max_size_cycle", "sequential" },
    doc = "when it ends, and how exhausted loaders are treated" },
}

-- A loader as it is; of what only gives values one after the other, a loader of these.
local function loader_of(value, name)
  if has_method(value, "batches") then return value end
  if dataset_protocol.is_iterable(value) then
    return DataLoader(value, { collate = function(list) return list[1] end })
  end
  errors.blame("CombinedLoader: %s must be a loader, an IterableDataset, or a function that "
    .. "returns an iterator: got %s", name, errors.show(value))
end

---@param loaders table a list or table of loaders, possibly nested
function CombinedLoader:init(loaders, options)
  local o <const> = config.check(options, OPTIONS, "CombinedLoader")
  if type(loaders) ~= "table" or getmetatable(loaders) ~= nil or next(loaders) == nil then
    errors.blame("CombinedLoader: needs a table of loaders: got %s", errors.show(loaders))
  end
  self.loaders, self._mode, self.epoch, self._leaves = loaders, o.mode, 0, {}
  tree.each(loaders, function(value, keys)
    local path = table.move(keys, 1, #keys, 1, {})
    local name = tree.path("", path):gsub("^%.", "")
    table.insert(self._leaves, { keys = path, name = name, loader = loader_of(value, name) })
  end)
end

--- Returns the loaders as a list; named ones in the order of their names.
function CombinedLoader:flattened()
  local list = {}
  for k, leaf in ipairs(self._leaves) do list[k] = leaf.loader end
  return list
end

--- Returns whether it reads its loaders one after the other.
function CombinedLoader:is_sequential() return self._mode == "sequential" end

--- Returns another combination of the same data, with its own position.
function CombinedLoader:copy()
  local copy = CombinedLoader(self.loaders, { mode = self._mode })
  for k, leaf in ipairs(self._leaves) do
    if class.is_a(leaf.loader, DataLoader) then copy._leaves[k].loader = leaf.loader:copy() end
  end
  return copy
end

--- Returns the number of batches in an epoch, nil if it is unknown. In mode "min_size" the second
--- result is true if it may be less, because some loaders have no length. `limits`: the maximum
--- number of batches of each loader, a list.
function CombinedLoader:length(limits)
  local least, most, sum, known = math.maxinteger, 0, 0, 0
  for k, leaf in ipairs(self._leaves) do
    local n = Rounds.length(leaf.loader, limits and limits[k])
    if n then
      least, most, sum, known = math.min(least, n), math.max(most, n), sum + n, known + 1
    end
  end
  local all = known == #self._leaves
  if self._mode == "min_size" and known > 0 then return least, not all end
  if not all then return nil end
  return self._mode == "sequential" and sum or most
end

function CombinedLoader:__len()
  local n = self:length()
  if not n then errors.blame("CombinedLoader: the length of some loaders is unknown") end
  return n
end

--- Sets the epoch (from 0) of the next pass.
function CombinedLoader:set_epoch(epoch)
  self.epoch = config.argument(epoch, "integer", "CombinedLoader", "epoch", { min = 0 })
  self._begun, self._saved, self._index = false, nil, nil
end

-- Whether the method of all leaves returns true; of a loader without it it is false.
local function all_are(self, method, ...)
  for _, leaf in ipairs(self._leaves) do
    if not has_method(leaf.loader, method) or not leaf.loader[method](leaf.loader, ...) then
      return false
    end
  end
  return true
end

--- Shards all loaders for a rank (see DataLoader). Returns false, without sharding any, if some
--- cannot be sharded; for "predict" also unless all are already sharded, because a combined batch
--- must be read by one rank.
function CombinedLoader:shard(rank, world, kind, batches_of)
  if kind == "predict" and not all_are(self, "comes_sharded") then return false end
  if all_are(self, "shard", rank, world, kind, batches_of) then return true end
  for _, leaf in ipairs(self._leaves) do
    if has_method(leaf.loader, "shard") then leaf.loader:shard() end
  end
  return false
end

--- Returns whether the data of some loaders is already sharded, so that lengths may differ between
--- ranks.
function CombinedLoader:comes_sharded()
  for _, leaf in ipairs(self._leaves) do
    if has_method(leaf.loader, "comes_sharded") and leaf.loader:comes_sharded() then return true end
  end
  return false
end

--- Returns a fingerprint of the order of the current pass, which ranks compare, or nil.
function CombinedLoader:fingerprint()
  local all
  for _, leaf in ipairs(self._leaves) do
    local one = has_method(leaf.loader, "fingerprint") and leaf.loader:fingerprint()
    if one then
      all = all or { hash = 0, length = 0, first = {}, cut = "" }
      all.hash = all.hash * 31 ~ one.hash
      all.length = all.length + one.length
      table.move(one.first, 1, #one.first, #all.first + 1, all.first)
      all.cut = ("%s%s%s: %s"):format(all.cut, all.cut ~= "" and "; " or "", leaf.name, one.cut)
    end
  end
  return all
end

-- Puts a part where its loader is in the table of loaders; nil: only the tables on the way.
local function put(batch, keys, part)
  for i = 1, #keys - 1 do
    batch[keys[i]] = batch[keys[i]] or {}
    batch = batch[keys[i]]
  end
  batch[keys[#keys]] = part
end

-- The next batch of a loader that begins anew at its end, unless all have ended once.
local function step_of_cycle(one, all)
  local part = one:step()
  if part ~= nil or one.ended then return part end
  for _, other in ipairs(all) do
    if not other.consumed then return one:again() end
  end
end

-- One batch of each; nil at the end, false where only other ranks have samples of a part.
local function next_of_all(self, all)
  local batch, waits, given = {}, false, 0
  for k, leaf in ipairs(self._leaves) do
    local part
    if self._mode == "max_size_cycle" then
      part = step_of_cycle(all[k], all)
      if part == nil and not all[k].ended then return nil end
    else
      part = all[k]:step()
      if part == nil and self._mode == "min_size" then return nil end
    end
    if part ~= nil then given = given + 1 end
    if part == false then waits = true else put(batch, leaf.keys, part) end
  end
  if given == 0 then return nil end
  return not waits and batch
end

local function length_of(self, k)
  return Rounds.length(self._leaves[k].loader, self._limits and self._limits[k])
end

local function open_one(self, k, from)
  return Rounds.open(self._leaves[k], self._limits and self._limits[k], self.epoch, from,
    self._mode == "max_size_cycle")
end

local function open_all(self, index, saved)
  local all = {}
  for k in ipairs(self._leaves) do all[k] = open_one(self, k, saved and saved[k] or index) end
  return all, function() return next_of_all(self, all), 1 end
end

-- The loader that batch `index` is of, and its number there; behind the end the last one.
local function turn_of(self, index)
  local last <const> = #self._leaves
  for k = 1, last do
    local n = length_of(self, k)
    if k == last or not n or index < n then return k, index end
    index = index - n
  end
end

-- The same of one loader after the other. Of the one that is being read `first` is the number of
-- its first batch. Batches of one of unknown length are read to find where the next one begins.
local function open_in_turn(self, index, saved)
  local all, k, at = {}, turn_of(self, index)
  if saved then k, at = saved.turn, saved[saved.turn] end
  local reached = index - (type(at) == "table" and at.at or at)
  local function next_batch()
    while k <= #self._leaves do
      local one = all[k] or open_one(self, k, at)
      one.first = one.first or reached
      all[k], self._turn = one, k
      local batch = one:step()
      if batch ~= nil then return batch, k end
      one:close()
      reached = reached + one.at
      k, at = k + 1, 0
    end
  end
  return all, next_batch
end

-- Reads and drops the first batches where a loader of unknown length comes before the `index`-th.
local function must_replay(self, index, saved)
  if self._mode ~= "sequential" or saved or index == 0 then return false end
  local k = turn_of(self, index)
  return k < #self._leaves and not length_of(self, k)
end

--- Iterates over (batch, index, number of the loader) from batch number `position` on (from 0; by
--- default from the start, or from the position that load_state_dict has set). A batch is `false`
--- if only other ranks have samples of it; the number of the loader (from 1) is for "sequential",
--- else 1. `limits`: the maximum number of batches of each loader, a list.
function CombinedLoader:batches(position, limits)
  if position ~= nil then
    config.argument(position, "integer", "CombinedLoader:batches", "position", { min = 0 })
  end
  if self._begun then self.epoch = self.epoch + 1 end
  self._begun, self._limits = true, limits
  local saved <const> = not position and self._saved or {}
  local index = (position or saved.position or 0) - 1
  local replays = must_replay(self, index + 1, saved.loaders)
  local open = self:is_sequential() and open_in_turn or open_all
  local all, next_batch = open(self, replays and 0 or index + 1, saved.loaders)
  if replays then
    for _ = 0, index do next_batch() end
  end
  local n = self:length(limits)
  self._saved, self._all, self._index, self._is_exact = nil, all, index + 1,
    saved.loaders ~= nil
  self._batches = combined_position.batches(self._leaves)
  local function step()
    local batch, number
    if not n or index + 1 < n then batch, number = next_batch() end
    if batch == nil then
      self._index = math.maxinteger
      return nil
    end
    index = index + 1
    self._index = index + 1
    return batch, index, number
  end
  return step, nil, nil, setmetatable({}, { __close = function()
    for _, one in pairs(all) do one:close() end
  end })
end

--- Returns how many ranks, the first ones, have samples of batch `index` of the current pass; nil
--- if all do.
function CombinedLoader:active_ranks(index)
  config.argument(index, "integer", "CombinedLoader:active_ranks", "index", { min = 0 })
  local all, least = self._all or {}, nil
  if self:is_sequential() then
    for k = #self._leaves, 1, -1 do
      if all[k] and index >= all[k].first then return all[k]:active(index - all[k].first) end
    end
    return nil
  end
  for _, one in ipairs(all) do
    local ranks = one:active(index)
    least = ranks and math.min(least or ranks, ranks) or least
  end
  return least
end

-- What is kept of each loader, where the number of batches does not say it.
local function loaders_state(self)
  local all, needed, list = self._all or {}, self._is_exact, { turn = self._turn }
  for _, leaf in ipairs(self._leaves) do needed = needed or Rounds.needs_state(leaf.loader) end
  if not needed or self:is_sequential() and not all[self._turn] then return nil end
  for k in ipairs(self._leaves) do list[k] = all[k] and all[k]:state(self._is_exact) or false end
  return list
end

--- Returns the state to resume the current pass: its epoch, the number of consumed batches, and, if
--- that is not sufficient, the states of the loaders.
function CombinedLoader:state_dict()
  local index = self._index
  if not index then
    return self._saved or { epoch = self.epoch, position = 0 }
  elseif index == math.maxinteger then
    return self:state_after() or { epoch = self.epoch + 1, position = 0 }
  end
  return { epoch = self.epoch, position = index, loaders = loaders_state(self),
    batches = self._batches }
end

--- Returns the state with which the next pass begins; nil unless data sets have their own states.
function CombinedLoader:state_after()
  local list, some = { turn = 1 }, false
  for k, leaf in ipairs(self._leaves) do
    local one = has_method(leaf.loader, "state_after") and leaf.loader:state_after() or nil
    list[k], some = { round = 0, at = 0, loader = one }, some or one ~= nil
  end
  return some and { epoch = self.epoch + 1, position = 0, loaders = list } or nil
end

--- Whether state_dict, after an error while reading, is still the state before the read.
function CombinedLoader:rewinds()
  for _, leaf in ipairs(self._leaves) do
    if Rounds.needs_state(leaf.loader) then return false end
  end
  return true
end

-- Raises unless `state` is what state_dict gives.
local function check_state(self, state)
  if type(state) ~= "table" then
    errors.blame("CombinedLoader: this is not the state of a loader: got %s", errors.show(state))
  end
  config.argument(state.epoch, "integer", "CombinedLoader: state", "epoch", { min = 0 })
  combined_position.check(state)
  config.argument(state.position, "integer", "CombinedLoader: state", "position",
    { min = 0, max = dataset_protocol.MOST })
  local loaders = state.loaders
  if loaders ~= nil and #config.argument(loaders, "table", "CombinedLoader: state", "loaders")
    ~= #self._leaves then
    errors.blame("CombinedLoader: the state is of %d loaders, here are %d", #loaders, #self._leaves)
  end
end

--- Makes the next pass resume from `state`.
function CombinedLoader:load_state_dict(state)
  check_state(self, state)
  self:set_epoch(state.epoch)
  self._saved = combined_position.convert(self._leaves, self._mode, state)
end

--- Returns the number of batches before the position of `state` (see state_dict), with the current
--- batch sizes.
function CombinedLoader:batches_before(state)
  check_state(self, state)
  return combined_position.convert(self._leaves, self._mode, state).position
end

return CombinedLoader
