--- stdlib/strategies/pipeline/BlockTimes.lua: how long forward and backward of each block take, as
--- measured in the first batches of a fit, which run undivided.
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local BlockTimes = class.extend(nil, "BlockTimes")

--- BlockTimes(count, clock): of so many blocks; `clock`: what counts seconds, by default the
--- system's.
function BlockTimes:init(count, clock)
  self.now = clock or c.runtime.clock
  self.count, self.least = count, { forward = {}, backward = {} }
  self:begin()
end

--- A microbatch begins.
function BlockTimes:begin()
  self.at = { forward = self.now(), before = nil, backward = nil }
  self.reached = nil -- the block whose backward goes on
end

-- Takes the time of a block in one direction: the least of all microbatches counts, as the first
-- ones find cold caches.
local function note(self, way, i, seconds)
  local least = self.least[way]
  least[i] = math.min(least[i] or math.huge, seconds)
end

-- Backward arrives at what block i has returned: what goes on until then is of the block after it,
-- or of what follows the last one.
local function arrive(self, i)
  local time = self.now()
  if self.at.backward then note(self, "backward", self.reached, time - self.at.backward) end
  self.at.backward, self.reached = time, i
end

-- The first tensor of a list that gradients go through.
local function first_tensor(list)
  for k = 1, list.n do
    if c.is_tensor(list[k]) and list[k].requires_grad then return list[k] end
  end
end

--- Calls forward(...) of block i, as BlockChain.step wants it.
function BlockTimes:watch(i, forward, ...)
  local began = self.now()
  if i == 1 then note(self, "forward", 0, began - self.at.forward) end
  local results = table.pack(forward(...))
  self.at.forward = self.now()
  note(self, "forward", i, self.at.forward - began)
  local y = first_tensor(results)
  if y and not y.is_leaf then y:register_hook(function() arrive(self, i) end) end
  return table.unpack(results, 1, results.n)
end

--- The step has ended, and backward begins.
function BlockTimes:begin_backward()
  local time = self.now()
  note(self, "forward", self.count + 1, time - self.at.forward)
  self.at.backward, self.reached = time, self.count + 1
end

--- Backward has ended.
function BlockTimes:end_backward()
  if self.at.backward then note(self, "backward", self.reached, self.now() - self.at.backward) end
  self.at.backward = nil
end

--- The seconds of each block, with what comes before the first one in it, and what follows the
--- last; a list of zeros where nothing was measured.
function BlockTimes:costs()
  local list = {}
  local function seconds(i)
    return (self.least.forward[i] or 0.0) + (self.least.backward[i] or 0.0)
  end
  for i = 1, self.count do list[i] = seconds(i) end
  list[1], list[self.count] = list[1] + seconds(0), list[self.count] + seconds(self.count + 1)
  return list
end

return BlockTimes
