--- stdlib/apps/plan/simulation.lua: how long a step takes: a discrete-event model of a rank that
--- computes and of the link that moves its bytes.
--
-- All ranks do the same at the same time (stand_in_ranks.lua), so one of them is enough. The link
-- moves one collective after another, in the order in which they were issued. Events are
-- the end of a segment of computation and the end of a collective.
local class = require "ltrain.core.class"

local simulation = {}

local Events = class.extend(nil, "Events")

-- A heap: the earliest first, of equal ones the one that was added first.
function Events:init() self.list, self.added = {}, 0 end

local function is_before(a, b)
  if a.at ~= b.at then return a.at < b.at end
  return a.number < b.number
end

function Events:add(at, fn)
  local list, k = self.list, #self.list + 1
  self.added = self.added + 1
  list[k] = { at = at, number = self.added, fn = fn }
  while k > 1 and is_before(list[k], list[k // 2]) do
    list[k], list[k // 2] = list[k // 2], list[k]
    k = k // 2
  end
end

function Events:take()
  local list, first = self.list, self.list[1]
  list[1] = list[#list]
  list[#list] = nil
  local k = 1
  while true do
    local least = k
    for child = 2 * k, 2 * k + 1 do
      if list[child] and is_before(list[child], list[least]) then least = child end
    end
    if least == k then return first end
    list[k], list[least] = list[least], list[k]
    k = least
  end
end

local Step = class.extend(nil, "Step")

function Step:init(timeline, cost, overlaps)
  self.timeline, self.cost, self.overlaps = timeline, cost, overlaps
  self.events, self.now, self.at, self.computing = Events(), 0, 0, 0
  self.issued, self.done = {}, {} -- sets of collectives
  self.queue = {} -- those that the link has not begun
end

-- The link takes its next collective.
function Step:move()
  local work = not self.is_moving and table.remove(self.queue, 1)
  if not work then return end
  self.is_moving = true
  self.events:add(self.now + self.cost(work), function()
    self.is_moving, self.done[work] = false, true
    self:move()
    if self.waits_for == work then self:continue() end
  end)
end

-- Whether the rank can continue: the work is done. If not, its end continues the rank.
function Step:wait(work)
  if not self.issued[work] or self.done[work] then return true end
  self.waits_for = work
  return false
end

-- Takes the next entries of the timeline, until the rank computes or waits.
function Step:continue()
  self.waits_for = nil
  while self.at < #self.timeline do
    self.at = self.at + 1
    local entry = self.timeline[self.at]
    if entry.seconds then
      self.computing = self.computing + entry.seconds
      return self.events:add(self.now + entry.seconds, function() self:continue() end)
    elseif entry.issue then
      self.issued[entry] = true
      table.insert(self.queue, entry)
      self:move()
    end
    local work = entry.wait or not self.overlaps and entry
    if work and not self:wait(work) then return end
  end
  self.ended = self.now
end

--- Seconds of a step, and of these what the rank computes. `timeline`: of a rank; `cost(work)`:
--- seconds of a collective; `overlaps`: whether the rank computes meanwhile.
function simulation.run(timeline, cost, overlaps)
  local step = Step(timeline, cost, overlaps)
  step.events:add(0, function() step:continue() end)
  while #step.events.list > 0 do
    local event = step.events:take()
    step.now = event.at
    event.fn()
  end
  return step.ended, step.computing
end

return simulation
