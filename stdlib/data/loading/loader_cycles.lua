-- stdlib/data/loading/loader_cycles.lua: one loader of a CombinedLoader, read once or cycled.
--
-- A place is a round, and the batches taken in it. Of a loader whose length is known that is a
-- division of the number of batches; else it is kept, with the loader's own state.

local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local has_method <const> = class.has_method

local Rounds = {}
Rounds.__index = Rounds

--- Epochs are far below this, so that no two rounds of one loader have the same number.
Rounds.MOST = 1 << 20

--- The batches of a loader, at most `limit`; nil if it does not know.
function Rounds.length(loader, limit)
  local n = has_method(loader, "length") and loader:length() or nil
  if limit and limit < math.huge then return n and math.min(n, limit) or nil end
  return n
end

--- Whether the number of a batch does not say where the loader stands.
function Rounds.needs_state(loader)
  return has_method(loader, "state_dict") and not (has_method(loader, "length") and loader:length()
    and has_method(loader, "rewinds") and loader:rewinds())
end

-- Opens round `round` after `at` batches, or where the loader's own state says.
local function open(self, round, at, saved)
  local loader = self.loader
  self.round, self.at = round, at
  if has_method(loader, "set_epoch") then loader:set_epoch(self.epoch + round * Rounds.MOST) end
  if saved then loader:load_state_dict(saved) end
  local step, state_of_step, _, closing = loader:batches(not saved and at or nil)
  if not class.is_callable(step) then
    errors.blame("CombinedLoader: batches() of loader %s must return an iterator: got %s",
      self.name, errors.show(step))
  end
  self.iterate, self.closing = function() return (step(state_of_step, nil)) end, closing
end

-- Opens it at batch `position`, counted over all rounds.
local function open_at(self, position)
  local n = Rounds.length(self.loader, self.limit)
  if self.cycles and n and n > 0 then return open(self, position // n, position % n) end
  if not self.cycles or n then return open(self, 0, n and math.min(position, n) or position) end
  open(self, 0, 0)
  for _ = 1, position do
    if self:step() == nil and self:again() == nil then return end
  end
end

--- Opens leaf {loader =, name =} of a combination at `from`: a count of batches, or what `state`
--- returned. `limit`: batches in a round at most; `cycles`: it may begin anew.
function Rounds.open(leaf, limit, epoch, from, cycles)
  local self = setmetatable({ loader = leaf.loader, name = leaf.name, limit = limit,
    epoch = epoch, cycles = cycles }, Rounds)
  if type(from) == "number" then
    open_at(self, from)
  else
    self.consumed, self.ended, self.round, self.at = from.consumed, from.ended, from.round, from.at
    if not from.ended then open(self, from.round, from.at, from.loader) end
  end
  return self
end

--- The next batch of the round; nil at its end.
function Rounds:step()
  if self.ended or not self.iterate then return nil end
  local batch
  if not self.limit or self.at < self.limit then batch = self.iterate() end
  if batch == nil then
    self.consumed, self.ended = true, not self.cycles
    return nil
  end
  self.at = self.at + 1
  return batch
end

--- The first batch of another round; nil of a loader without batches.
function Rounds:again()
  self:close()
  open(self, self.round + 1, 0)
  local batch = self:step()
  self.ended = batch == nil
  return batch
end

--- How many ranks, the first ones, have samples of its batch number `index`; nil: all.
function Rounds:active(index)
  if not has_method(self.loader, "active_ranks") then return nil end
  local n = Rounds.length(self.loader, self.limit)
  if not n or n == 0 then return nil end
  return self.loader:active_ranks(self.cycles and index % n or index)
end

--- Where it stands, as a table that can be saved; with `always` the loader's own state is in it.
function Rounds:state(always)
  local loader = self.loader
  return { round = self.round, at = self.at, consumed = self.consumed, ended = self.ended,
    loader = not self.ended and (always or Rounds.needs_state(loader)) and loader:state_dict()
      or nil }
end

--- Ends it: the loader may stop its threads.
function Rounds:close()
  local _ <close> = self.closing
  self.iterate, self.closing = nil, nil
end

return Rounds
