-- stdlib/data/loading/combined_position.lua: the position of a CombinedLoader that is resumed with
-- other global batches than it was saved with (on another number of ranks).
--
-- A position counts batches. Here it is converted to samples of each loader, and back to batches of
-- the present size. From then on the state has the position of each loader.

local DataLoader = require "ltrain.data.DataLoader"
local Rounds = require "ltrain.data.loading.loader_cycles"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local loader_position = require "ltrain.data.loading.loader_position"

local combined_position = {}

-- The global batch of a loader; nil: it has none.
local function global_batch(loader)
  return class.has_method(loader, "global_batch") and loader:global_batch() or nil
end

--- The global batches of the loaders, false where one has none.
function combined_position.batches(leaves)
  local list = {}
  for k, leaf in ipairs(leaves) do list[k] = global_batch(leaf.loader) or false end
  return list
end

local WHERE <const> = "CombinedLoader: state"

--- Raises unless the batches and loaders of a state are what state_dict gives.
function combined_position.check(state)
  if state.batches == nil then return end
  for _, size in ipairs(config.argument(state.batches, "table", WHERE, "batches")) do
    if size then
      config.argument(size, "integer", WHERE, "batches", { min = 1, max = dataset_protocol.MOST })
    end
  end
  for _, entry in ipairs(type(state.loaders) == "table" and state.loaders or {}) do
    if entry then
      config.argument(entry, "table", WHERE, "loaders")
      config.argument(entry.round, "integer", WHERE, "round", { min = 0, max = Rounds.MOST })
      local own = entry.loader
      if type(own) == "table" and own.position ~= nil then
        config.argument(own.position, "integer", WHERE, "position", { min = 0 })
      end
    end
  end
end

-- Samples of a round of a loader; nil where batches are not cut from a known number of them.
local function count_samples(loader)
  if not class.is_a(loader, DataLoader) or not global_batch(loader) then return nil end
  return (loader_position.extent(loader, 0))
end

-- The round and the samples in it of a loader that was saved as `entry`, nil: after `index` batches
-- of `size` samples; `was`: the batches that a round had then.
local function place_before(loader, total, entry, index, size, cycles)
  local was = loader.drop_last and total // size or (total + size - 1) // size
  if entry then
    local position = type(entry.loader) == "table" and entry.loader.position
    return entry.round, entry.ended and total or position or total, was
  end
  if cycles and was > 0 then return index // was, math.min(index % was * size, total), was end
  return 0, math.min(index * size, total), was
end

-- Where a loader is: {round =, samples =, n = batches in a round now, done = of them, was =}; nil
-- where that is not known.
local function place_of(loader, entry, index, size, cycles)
  local total = size and count_samples(loader)
  if not total then return nil end
  local round, samples, was = place_before(loader, total, entry, index, size, cycles)
  return { round = round, samples = samples, was = was, n = loader:length(),
    done = loader:batches_before { position = samples, epoch = 0 } }
end

-- What loader_cycles keeps of a loader at a place in epoch `epoch`.
local function entry_of(place, epoch, cycles)
  local has_ended = not cycles and place.done >= place.n
  return { round = place.round, at = place.done, consumed = place.round > 0 or has_ended,
    ended = has_ended,
    loader = { epoch = epoch + place.round * Rounds.MOST, position = place.samples } }
end

-- The number of the batch that comes next, so that as many follow as the loaders have left.
local function index_of(places, mode)
  local is_least = mode == "min_size"
  local left, length
  for _, place in ipairs(places) do
    local own = place.round > 0 and 0 or place.n - place.done
    left = left and (is_least and math.min or math.max)(left, own) or own
    length = length and (is_least and math.min or math.max)(length, place.n) or place.n
  end
  return length - left
end

-- Loaders that are read together.
local function together(leaves, mode, state)
  local saved, list, places = state.loaders or {}, {}, {}
  local cycles = mode == "max_size_cycle"
  for k, leaf in ipairs(leaves) do
    places[k] = place_of(leaf.loader, saved[k], state.position, state.batches[k], cycles)
    if not places[k] then return nil end
    list[k] = entry_of(places[k], state.epoch, cycles)
  end
  return list, index_of(places, mode)
end

-- Loaders that are read one after the other.
local function in_turn(leaves, state)
  local saved, index, reached, list = state.loaders or {}, state.position, 0, {}
  for k in ipairs(leaves) do list[k] = false end
  for k, leaf in ipairs(leaves) do
    local is_current = saved.turn == k
    local place = place_of(leaf.loader, is_current and saved[k] or nil, index, state.batches[k],
      false)
    if not place then return nil end
    if is_current or not saved.turn and (index < place.was or k == #leaves) then
      list.turn, list[k] = k, entry_of(place, state.epoch, false)
      return list, reached + place.done
    end
    index, reached = index - place.was, reached + place.n
  end
end

-- Whether the global batches are those of the state.
local function are_equal(leaves, batches)
  for k, leaf in ipairs(leaves) do
    if batches[k] ~= (global_batch(leaf.loader) or false) then return false end
  end
  return true
end

--- The state with which a combination of the mode continues: that which was saved, where its
--- loaders have the global batches that they had, or are not cut from a known number of samples.
function combined_position.convert(leaves, mode, state)
  local batches = state.batches
  if type(batches) ~= "table" or state.position == 0 or #batches ~= #leaves
    or are_equal(leaves, batches) then
    return state
  end
  local list, index
  if mode == "sequential" then
    list, index = in_turn(leaves, state)
  else
    list, index = together(leaves, mode, state)
  end
  return list and { epoch = state.epoch, position = index, loaders = list } or state
end

return combined_position
