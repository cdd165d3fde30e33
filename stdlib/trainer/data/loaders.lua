--- stdlib/trainer/data/loaders.lua: wraps everything that can be iterated as one interface, a
--- source of batches.
--
-- A source opens at (epoch, position) and hands out batches with the knowledge whether one is the
-- last. Accepted: a DataLoader or any object with `batches(position)`, a table of batches, a
-- function (one that returns an iterator, or itself an iterator), an object that can be called.
local Dataset = require "ltrain.data.Dataset"
local IterableDataset = require "ltrain.data.IterableDataset"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local loop = require "ltrain.trainer.loop"
local tree = require "ltrain.core.tree"

local loaders = {}

local has_method <const>, is_callable <const> = class.has_method, class.is_callable

-- Those of the library can be called only to say how to loop over them.
local function is_dataset(value)
  return class.is_a(value, Dataset) or class.is_a(value, IterableDataset)
    or not is_callable(value) and (has_method(value, "get") or has_method(value, "iterate"))
end

local function is_loader(value)
  return has_method(value, "batches") or is_callable(value) and not is_dataset(value)
end

-- What a loader's own length() says: a count, or nil when it does not know; whether it may be less.
local function own_length(loader, where)
  local length, at_most = loader:length()
  if length == nil then return nil end
  local count = math.tointeger(length)
  if type(length) ~= "number" or not count or count < 0 then
    errors.blame("%s: length() must return a count or nil: got %s", where, errors.show(length))
  end
  return count, at_most == true
end

local function length_of(loader, where)
  if has_method(loader, "length") then return own_length(loader, where) end
  if not has_method(loader, "batches") and is_callable(loader) then return nil end
  local meta = getmetatable(loader)
  if meta == nil or meta.__len then return #loader end
end

-- An iterator over a table of batches.
local function from_table(batches, position)
  local i = position
  return function()
    i = i + 1
    return batches[i]
  end
end

-- Functions that are iterators themselves: what is known of them, in whatever run they are read.
local iterators <const> = setmetatable({}, { __mode = "k" })

-- The only pass over such a function: once at its end it is not called again (a coroutine would
-- raise), and another pass warns.
local function only_pass(source, fn)
  local once = iterators[fn]
  if once.spent and not once.warned then
    once.warned = true
    console.say(("warning: %s: a function that returns batches can be read once, and is "
      .. "exhausted: no "
      .. "batches are left; let it return an iterator to be read again"):format(source.where))
  end
  return function()
    if once.spent then return nil end
    local batch = fn()
    once.spent = batch == nil
    return batch
  end
end

-- An iterator from a function: it may make iterators, or be one (then there is one pass only).
local function from_function(source, fn)
  if iterators[fn] then return only_pass(source, fn) end
  local first = fn()
  if type(first) == "function" then return first end
  iterators[fn] = {}
  local rest = only_pass(source, fn)
  iterators[fn].spent = first == nil
  return function()
    local batch = first
    if batch == nil then return rest() end
    first = nil
    return batch
  end
end

-- Drops the batches before `position` from an iterator that cannot start there.
local function replay(next_batch, position, kind, count)
  for i = 1, position do
    loop.begin_read(kind, count - position + i - 1)
    if next_batch() == nil then return end
  end
end

-- The iterator of an object with `batches`, and what to close when it is left early.
local function from_object(source, epoch, position, saved)
  local loader = source.loader
  if has_method(loader, "set_epoch") then loader:set_epoch(epoch) end
  if saved ~= nil and has_method(loader, "load_state_dict") then
    local _ <close> = errors.reading(source.state_file)
    loader:load_state_dict(saved)
    position = nil -- it knows
  end
  -- The iterator must be a closure: handing the last batch back to it would keep it alive.
  local step, field, _, closing = loader:batches(position, source.limits)
  if not is_callable(step) then
    errors.blame("%s: batches() must return an iterator: got %s", source.where, errors.show(step))
  end
  if source.opened then source.opened(loader) end
  return function() return (step(field, nil)) end, closing
end

-- Whether a table holds loaders, by position or by name, rather than batches.
local function is_collection(value)
  if type(value) ~= "table" or getmetatable(value) ~= nil or is_loader(value) then return false end
  for key, first in next, value do
    if type(key) == "string" or is_loader(first) then return true end
  end
  return false
end

local function check(value, where)
  if class.made[value] then
    errors.blame("%s: a loader is needed: got %s: make an object: %s(...)", where,
      errors.show(value), value.__name)
  end
  if not is_loader(value) and is_dataset(value) then
    errors.blame("%s: a loader is needed, and this is a data set: lt.data.DataLoader(dataset, "
      .. "{batch_size = ...}): got %s", where, errors.show(value))
  end
  if not is_loader(value) and (type(value) ~= "table" or getmetatable(value) ~= nil) then
    errors.blame("%s: a loader must be a DataLoader, a table of batches, a function or an object "
      .. "with batches(): got %s%s", where, errors.show(value), c.is_tensor(value)
      and ": write lt.data.DataLoader(lt.data.TensorDataset(x), {batch_size = ...})" or "")
  end
end

--- Whether a value is a CombinedLoader. The class is loaded by what makes one.
function loaders.is_combined(value)
  return class.of(value) ~= nil and value.is_sequential ~= nil
end

--- Loaders in a table as one, which training reads together; anything else as it is.
function loaders.together(value)
  if not is_collection(value) then return value end
  return require "ltrain.data.CombinedLoader" (value, "max_size_cycle")
end

--- A source from whatever the user gave. `where` begins error texts. `source.active(index)` says
-- how many ranks, the first ones, have samples of a batch that was begun; nil: all.
-- `source.least(index)`: how many samples each of these has at least; nil: not known.
function loaders.source(value, where)
  check(value, where)
  local counts_ranks = has_method(value, "active_ranks")
  local counts_samples = has_method(value, "least_samples")
  local length, at_most = length_of(value, where)
  return {
    loader = value, where = where, length = length, at_most = at_most,
    batch_size = type(value) == "table" and math.tointeger(value.batch_size) or nil,
    active = function(index)
      if counts_ranks then return value:active_ranks(index) end
    end,
    least = function(index)
      if counts_samples then return value:least_samples(index) end
    end,
  }
end

--- Samples of a step of all ranks; nil when it is not known.
function loaders.global_batch(source, ranks)
  local loader, each = source.loader, source.batch_size
  if has_method(loader, "global_batch") then
    local known = loader:global_batch()
    if not known or loader.global_batch_size then return known end
    if has_method(loader, "keeps_batches") and loader:keeps_batches() then return known end
  end
  return source.global_batch or each and each * ranks
end

--- The loaders of a CombinedLoader that reads them one after the other; anything else as it is.
function loaders.one_by_one(value)
  if loaders.is_combined(value) and value:is_sequential() then return value:flattened() end
  return value
end

--- How many loaders were given.
function loaders.number(value)
  if value == nil then return 0 end
  value = loaders.one_by_one(value)
  return is_collection(value) and #tree.keys(value) or 1
end

--- A list of sources (evaluation) from one loader, a list of them, or a table of them by name,
--- which are read in the order of their names.
function loaders.sources(value, where)
  value = loaders.one_by_one(value)
  if not is_collection(value) then return { loaders.source(value, where) } end
  local list, keys, mixed = {}, tree.keys(value)
  if mixed then errors.blame("%s: loaders are given by position and by name", where) end
  for i, key in ipairs(keys) do
    if type(key) == "number" and key ~= i then
      errors.blame("%s: no loader is at position %d, but one is at %s", where, i, key)
    end
    list[i] = loaders.source(value[key], tree.path(where, { key }))
  end
  return list
end

-- How many of `length` batches (nil: unknown) a limit leaves; nil: all of an unknown number.
local function limited(length, limit, option)
  if math.type(limit) == "integer" then return length and math.min(length, limit) or limit end
  if length == nil then
    if limit ~= 1.0 and limit ~= 0.0 then
      errors.blame("%s: a fraction of a loader without length is unknown: got %s; give an integer",
        option, limit)
    end
    return limit == 0.0 and 0 or nil
  end
  local count = math.floor(length * limit)
  if limit > 0 and length > 0 and count == 0 then
    errors.blame("%s: %s of %d batches is 0 batches: give at least %s or an integer", option,
      limit, length, 1 / length)
  end
  return count
end

-- The limit is each loader's own where one is read after the other.
local function limit_each(source, limit, option)
  local limits = {}
  for k, loader in ipairs(source.loader:flattened()) do
    limits[k] = limited(length_of(loader, source.where), limit, option) or math.huge
  end
  source.limits, source.length = limits, source.loader:length(limits)
  source.count = source.length
end

--- Sets how many batches of the source are used: an integer counts, a float is a share.
function loaders.limit(source, limit, option)
  if loaders.one_by_one(source.loader) ~= source.loader then
    limit_each(source, limit, option)
  else
    source.count = limited(source.length, limit, option)
  end
end

local function open_iterator(source, epoch, position, kind, counter, saved)
  local loader = source.loader
  if has_method(loader, "batches") then
    return from_object(source, epoch, position, saved)
  elseif is_callable(loader) then
    loop.begin_read(kind, counter - position)
    local again = iterators[loader]
    local next_batch = from_function(source, loader)
    -- A function that never ends has already given the batches of all former epochs.
    local once = iterators[loader] and not again and kind == "train"
    local dropped = once and counter or position
    replay(next_batch, dropped, kind, counter)
    return next_batch
  end
  return from_table(loader, position)
end

-- Whether a read that was cut short can be done again: by position, or because the loader's state
-- is still that from before it.
local function can_rewind(loader)
  return not has_method(loader, "state_dict")
    or has_method(loader, "rewinds") and loader:rewinds()
end

-- Whether it knows what its state was before a batch that it has given.
local function can_go_back(loader, position)
  if not has_method(loader, "state_dict") then return true end
  return has_method(loader, "state_before") and loader:state_before(position) ~= nil
end

--- Begins a pass at batch `position` (a count) of `epoch`. `counter` is the number of batches that
-- this kind of loop has begun so far; `saved` what the loader's own state_dict had returned.
function loaders.open(source, kind, epoch, position, counter, saved)
  local pass = { source = source, kind = kind, index = position, counter = counter,
    draws = is_loader(source.loader) }
  local once = iterators[source.loader]
  pass.exhausted = once and once.spent -- a function that has given all that it has
  pass.rewinds = pass.draws and can_rewind(source.loader)
  source.last_pass = pass
  if source.count and position >= source.count then
    pass.next_batch = function() end
    return pass
  end
  pass.next_batch, pass.closing = open_iterator(source, epoch, position, kind, counter, saved)
  if source.turns then pass.next_batch = source.turns(pass) end
  pass.goes_back = can_go_back(source.loader, position)
  return pass
end

--- What cuts batches short, function(batch), where the first one of a pass is to be its only one.
loaders.cut = nil

-- Draws go by the number that the batch has among those of all ranks, where it has one.
local function read(pass, ahead)
  if pass.draws then
    local source, index = pass.source, pass.index + ahead
    local number = source.number and source.number(index) or index
    loop.begin_read(pass.kind, pass.counter - pass.index + number, source.part)
  end
  return pass.next_batch()
end

local function state_of(loader)
  if has_method(loader, "state_dict") then return loader:state_dict() end
end

local function too_short(pass)
  local source = pass.source
  if source.length and not source.at_most and pass.index < source.count then
    errors.blame("%s: its length is %d batches, but it has "
      .. "%d", source.where, source.length, pass.index)
  end
end

--- The next batch, its number from 0, and whether it is the last; nil at the end. The batch is
-- `false` where only other ranks have samples.
function loaders.next(pass)
  local source, index = pass.source, pass.index
  if pass.ended or source.count and index >= source.count then return nil end
  local exact = source.length and not source.at_most
  local counted = source.count and (exact or index + 1 == source.count)
  local batch = pass.ahead
  pass.reading = true
  pass.before = batch ~= nil and pass.saved
    or not (counted and pass.goes_back) and state_of(source.loader) or nil
  pass.ahead = nil
  if batch == nil then batch = read(pass, 0) end
  if batch == nil then
    too_short(pass)
    return nil
  end
  local is_last
  if loaders.cut then
    batch, is_last, pass.ended = loaders.cut(batch), true, true
  elseif counted then
    is_last = index + 1 == source.count
  else
    pass.saved = state_of(source.loader)
    pass.ahead = read(pass, 1)
    is_last = pass.ahead == nil
    pass.ended = is_last
  end
  pass.index, pass.counter = index + 1, pass.counter + 1
  pass.reading, pass.previous, pass.before = false, pass.before, nil
  return batch, index, is_last
end

--- Raises when a pass has ended that gave no batch at all.
function loaders.refuse_nothing(pass, fn)
  local source = pass.source
  if pass.index > 0 or pass.exhausted or source.count == 0 then return end
  local loader = source.loader
  local line = type(loader) == "function" and c.runtime.function_line(loader)
  errors.blame("%s: %s has no batches: %s", fn, source.where, line
    and ("the function of %s returned nothing, or an iterator that gave nothing"):format(line)
    or errors.show(loader) .. " gave none")
end

--- What the loader itself wants to keep at this point, or nil. After a read that was cut short:
-- what it was before. After the end of the pass: what it was then.
function loaders.state(pass)
  if pass.closed then return pass.saved end
  if pass.reading then return pass.before or state_of(pass.source.loader) end
  if pass.ahead ~= nil or pass.ended then return pass.saved end
  return state_of(pass.source.loader)
end

--- Ends a pass early or late: lets the loader stop its threads.
function loaders.close(pass)
  local closing = pass.closing
  local known, saved = pcall(loaders.state, pass) -- an error is on its way already
  pass.saved, pass.closed = known and saved or nil, true
  pass.closing, pass.ahead, pass.next_batch = nil, nil, nil
  local _ <close> = closing
end

return loaders
