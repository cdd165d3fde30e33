-- stdlib/data/CombinedLoader.lua: several loaders as one, which a fit can have.
--
--   local lt = require "ltrain"
--   local function loader(n, size)
--     return lt.data.DataLoader(lt.data.TensorDataset{x = lt.arange(n)}, {batch_size = size})
--   end
--   local both = lt.data.CombinedLoader({a = loader(6, 2), b = loader(3, 3)},
--     {mode = "max_size_cycle"})
--   for batch, i in both:batches() do print(i, batch.a.x, batch.b.x) end
--   -- prints: 0	tensor([0, 1])	tensor([0, 1, 2])
--   -- prints: 1	tensor([2, 3])	tensor([0, 1, 2])
--   -- prints: 2	tensor([4, 5])	tensor([0, 1, 2])
--
-- A batch is a table of a batch of each loader, by position or by name. The modes are Lightning's:
-- "min_size" ends with the shortest loader; "max_size" with the longest, and batches of those that
-- have ended are absent; "max_size_cycle" begins these anew, each time in another order;
-- "sequential" gives the batches of one loader after those of another, as they are.

local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local samples = require "ltrain.data.loading.samples"
local tree = require "ltrain.core.tree"

local CombinedLoader = class.extend(nil, "CombinedLoader")

local OPTIONS <const> = {
  mode = { type = "string", default = "min_size",
    choices = { "min_size", "max_size", "max_size_cycle", "sequential" },
    doc = "when it ends, and what comes of loaders that have ended" },
}

-- Epochs are far below this, so that no two passes through a loader have one number.
local ROUNDS <const> = 1 << 20

---@param loaders table loaders by position or by name
function CombinedLoader:init(loaders, options)
  local o <const> = config.check(options, OPTIONS, "CombinedLoader")
  if type(loaders) ~= "table" or getmetatable(loaders) ~= nil or next(loaders) == nil then
    errors.blame("CombinedLoader: needs a table of loaders: got %s", errors.show(loaders))
  end
  self.loaders, self._mode, self.epoch = loaders, o.mode, 0
  self._keys = tree.keys(loaders)
  for _, key in ipairs(self._keys) do
    local loader = loaders[key]
    if not class.has_method(loader, "batches") or not class.has_method(loader, "length") then
      errors.blame("CombinedLoader: %s must be a loader: got %s", key, errors.show(loader))
    elseif not loader:length() then
      errors.blame("CombinedLoader: the length of loader %s must be known: its samples come one "
        .. "after the other", key)
    end
  end
end

local function each(self, fn)
  for _, key in ipairs(self._keys) do fn(self.loaders[key], key) end
end

--- Returns the number of batches in an epoch.
function CombinedLoader:length()
  local least, most, sum = math.maxinteger, 0, 0
  each(self, function(loader)
    local n = loader:length()
    least, most, sum = math.min(least, n), math.max(most, n), sum + n
  end)
  return self._mode == "min_size" and least or self._mode == "sequential" and sum or most
end

function CombinedLoader:__len() return self:length() end

--- Sets the epoch (from 0) of the next pass.
function CombinedLoader:set_epoch(epoch)
  self.epoch = config.argument(epoch, "integer", "CombinedLoader", "epoch", { min = 0 })
  self._begun, self._saved, self._index = false, nil, nil
end

--- Makes all loaders those of a rank (see DataLoader).
function CombinedLoader:shard(rank, world, kind)
  local sharded = true
  each(self, function(loader) sharded = loader:shard(rank, world, kind) and sharded end)
  return sharded
end

--- Whether the data of all of them is sharded already.
function CombinedLoader:comes_sharded()
  local sharded = true
  each(self, function(loader) sharded = loader:comes_sharded() and sharded end)
  return sharded
end

--- Returns what ranks compare of the orders of the current pass; nil where there is nothing.
function CombinedLoader:fingerprint()
  local all
  each(self, function(loader, key)
    local one = loader:fingerprint()
    if not one then return end
    all = all or { hash = 0, length = 0, first = {}, cut = "" }
    all.hash = all.hash * 31 ~ one.hash
    all.length = all.length + one.length
    table.move(one.first, 1, #one.first, #all.first + 1, all.first)
    all.cut = ("%s%s%s: %s"):format(all.cut, all.cut ~= "" and "; " or "", key, one.cut)
  end)
  return all
end

-- A walk through one loader from batch `position` on, counted over all its rounds: step() gives a
-- batch, or nil where the loader ends and does not begin anew; close() ends it.
local function walk(loader, epoch, position, cycles)
  local n = loader:length()
  local round, closing, iterate
  local function open(number, at)
    round = number
    loader:set_epoch(epoch + number * ROUNDS)
    local step, held, _, close = loader:batches(at)
    iterate, closing = function() return (step(held, nil)) end, close
  end
  local function close()
    local _ <close> = closing
    closing = nil
  end
  if cycles and n > 0 then open(position // n, position % n) else open(0, math.min(position, n)) end
  local function step()
    local batch = iterate()
    if batch ~= nil or not cycles or n == 0 then return batch end
    close()
    open(round + 1, 0)
    return iterate()
  end
  return { step = step, close = close, active = function(index)
    return loader:active_ranks(cycles and n > 0 and index % n or index)
  end }
end

-- One batch of each; nil at the end, false where only other ranks have samples of a part.
local function next_of_all(self, walks)
  local batch, waits, ended = {}, false, 0
  for k, key in ipairs(self._keys) do
    local part = walks[k].step()
    if part == nil then
      ended = ended + 1
    elseif part == false then
      waits = true
    else
      batch[key] = part
    end
  end
  if ended == #self._keys or ended > 0 and self._mode == "min_size" then return nil end
  return not waits and batch
end

local function open_all(self, epoch, position)
  local walks = {}
  each(self, function(loader)
    walks[#walks + 1] = walk(loader, epoch, position, self._mode == "max_size_cycle")
  end)
  return walks, function() return next_of_all(self, walks) end
end

-- The same of one loader after the other.
local function open_in_turn(self, epoch, position)
  local walks, k = {}, 1
  local function next_batch()
    while k <= #self._keys do
      local loader = self.loaders[self._keys[k]]
      local n = loader:length()
      if position < n then
        walks[1] = walks[1] or walk(loader, epoch, position, false)
        local batch = walks[1].step()
        if batch ~= nil then return batch end
        walks[1].close()
      end
      k, position, walks[1] = k + 1, math.max(position - n, 0), nil
    end
  end
  return walks, next_batch
end

--- Iterates over (batch, index) from batch number `position` on (from 0; by default from the start,
--- or from the position that load_state_dict has set). A batch is `false` if only other ranks have
--- samples of it.
function CombinedLoader:batches(position)
  if position ~= nil then
    config.argument(position, "integer", "CombinedLoader:batches", "position", { min = 0 })
  end
  if self._begun then self.epoch = self.epoch + 1 end
  self._begun = true
  local index = (position or self._saved or 0) - 1
  local open = self._mode == "sequential" and open_in_turn or open_all
  local walks, next_batch = open(self, self.epoch, index + 1)
  local n = self:length()
  self._saved, self._walks, self._index = nil, walks, index + 1
  local function step()
    local batch
    if index + 1 < n then batch = next_batch() end
    if batch == nil then
      self._index = math.maxinteger
      return nil
    end
    index = index + 1
    self._index = index + 1
    return batch, index
  end
  return step, nil, nil, setmetatable({}, { __close = function()
    for _, one in ipairs(walks) do one.close() end
  end })
end

--- Returns how many ranks, the first ones, have samples of batch `index` of the current pass; nil
--- if all do.
function CombinedLoader:active_ranks(index)
  config.argument(index, "integer", "CombinedLoader:active_ranks", "index", { min = 0 })
  if self._mode == "sequential" then return nil end
  local least
  for _, one in ipairs(self._walks or {}) do
    local ranks = one.active(index)
    least = ranks and math.min(least or ranks, ranks) or least
  end
  return least
end

--- Returns the state to resume the current pass: its epoch, and the number of batches consumed.
function CombinedLoader:state_dict()
  local index = self._index or self._saved or 0
  if index == math.maxinteger then return { epoch = self.epoch + 1, position = 0 } end
  return { epoch = self.epoch, position = index }
end

--- Whether state_dict, after an error while reading, is still the state before the read.
function CombinedLoader:rewinds() return true end

--- Makes the next pass resume from `state`.
function CombinedLoader:load_state_dict(state)
  if type(state) ~= "table" then
    errors.blame("CombinedLoader: this is not the state of a loader: got %s", errors.show(state))
  end
  self:set_epoch(config.argument(state.epoch, "integer", "CombinedLoader: state", "epoch",
    { min = 0 }))
  self._saved = config.argument(state.position, "integer", "CombinedLoader: state", "position",
    { min = 0, max = samples.MOST })
end

return CombinedLoader
