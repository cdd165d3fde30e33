--- stdlib/strategies/sharded/Rounds.lua: the same order of gathers and reductions on all ranks,
--- whatever each of them computes.
--
-- Ranks take part in every gather, also of units that they do not use: they may take other
-- branches, have no samples, or run forward more often than others. So all goes in rounds: a pass
-- over the units forward, or backward. A round begins with a vote, in which each rank says what it
-- wants next; forward goes before backward, and backward before the end. Within a round the order
-- is fixed. A rank that wants a unit takes part in all that comes before it; one that wants nothing
-- takes part in the whole round. Before any other collective of all ranks a rank votes for the end
-- until all do.
--
-- The gather that is next begins before it is wanted, and a reduction ends where the next one
-- begins: both run beside what is computed meanwhile.
--
-- The order is that in which modules stand in the model, until a forward of rank 0 has shown
-- another one. It does not matter for what is computed: a unit that is wanted out of order begins
-- another round. "All ranks" are those of a group, where only they share the parameters.
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local d = c.dist

local Rounds = class.extend(nil, "Rounds")

-- PAUSE is an end of which a rank says that it computes with units that stay. A backward may be two
-- rounds: of the gradients of inputs, for which units are gathered, and of those of weights, which
-- are reduced.
local END <const>, PAUSE <const>, WEIGHTS <const>, INPUTS <const>, BACKWARD <const>,
  FORWARD <const> = 0, 1, 2, 3, 4, 5

local KINDS <const> = { inputs = INPUTS, weights = WEIGHTS }

--- Rounds(units, reduces, group): `reduces`: gradients are reduced as backward passes; `group`: the
--- ranks (nil: of the world).
function Rounds:init(units, reduces, group)
  self.units, self.reduces, self.ranks = units, reduces, group and group._handle
  self.order = table.move(units, 1, #units, 1, {})
  self.staying = {} -- units that were gathered and stay, a set; the same on all ranks
  self.kind, self.next = END, 1
  self.in_backward = false -- or the kind of its rounds
  self.scopes = 0 -- open ones, in which units that stay are needed
  self.reducing = nil -- the unit whose reduction has not ended
  self.ballot = c.zeros({ 1 }, { dtype = "f64" })
  self.seen = {} -- units in the order in which forward wanted them; false once that is agreed
end

-- What all ranks do next, the largest of what they want.
local function vote(self, wanted)
  local _ <close> = c.no_grad()
  self.ballot:fill_(wanted)
  d.wait(d.collective(self.ranks, "all_reduce_", self.ballot, "max"))
  return math.tointeger(self.ballot:item())
end

-- The actions of a round are { unit =, gathers = } and { unit =, reduces = }, and the places of the
-- gathers in them.
local function new_list() return { place = {} } end

local function add(list, unit, what)
  if what == "gathers" and (list.place[unit] or not unit:is_parted()) then return end
  list[#list + 1] = { unit = unit, [what] = true }
  if what == "gathers" then list.place[unit] = #list end
end

local function forward_actions(order)
  local list = new_list()
  for _, unit in ipairs(order) do add(list, unit, "gathers") end
  return list
end

-- Backward comes to a unit before it comes to those in it.
local function add_outer_first(list, unit)
  if unit.outer then add_outer_first(list, unit.outer) end
  add(list, unit, "gathers")
end

-- The other way round, but that units which stay come first: their parameters may be used anywhere.
-- A unit is reduced when the next one has been gathered: then its last gradient is there.
local function backward_actions(order, gathers, reduces)
  local list, before = new_list(), nil
  for _, unit in ipairs(gathers and order or {}) do
    if unit.stays then add(list, unit, "gathers") end
  end
  for i = #order, 1, -1 do
    local unit = order[i]
    if gathers then add_outer_first(list, unit) end
    if before and reduces then add(list, before, "reduces") end
    before = unit
  end
  if before and reduces then add(list, before, "reduces") end
  return list
end

local function begin(self, kind)
  self.kind, self.next = kind, 1
  if kind == FORWARD then
    self.actions = forward_actions(self.order)
    return
  end
  self.actions = backward_actions(self.order, kind ~= WEIGHTS, self.reduces and kind ~= INPUTS)
end

-- Whether an action changes nothing, on any rank: the unit has been gathered, and stays.
local function is_done(self, action)
  return action.gathers and action.unit.stays and self.staying[action.unit]
end

-- Takes part in a gather; `uses`: this rank computes with the unit.
local function gather(self, unit, uses)
  local was_here = unit.is_here
  unit:gather()
  if unit.stays then
    self.staying[unit] = true
  elseif not uses and not was_here then
    unit:release()
  end
end

local function end_reduction(self)
  if self.reducing then self.reducing:end_reduce() end
  self.reducing = nil
end

local function reduce(self, unit)
  end_reduction(self)
  unit:begin_reduce()
  self.reducing = unit
end

local function run(self, action, uses)
  if is_done(self, action) then return end
  if action.gathers then return gather(self, action.unit, uses) end
  reduce(self, action.unit)
end

local function release_unused(self)
  for _, unit in ipairs(self.units) do
    if not unit.stays and not unit:is_in_use() then unit:release() end
  end
end

-- Takes part in what is left of the round.
local function finish(self)
  while self.next <= #self.actions do
    local action = self.actions[self.next]
    self.next = self.next + 1
    run(self, action, false)
  end
  end_reduction(self)
  local was_forward = self.kind == FORWARD
  self.kind = END
  release_unused(self)
  if was_forward and self.seen then self:agree_on_order() end
end

-- Begins a round of a kind; others that want another one first have it.
local function open(self, kind)
  if self.kind ~= END then finish(self) end
  while true do
    local agreed = vote(self, kind)
    begin(self, agreed)
    if agreed == kind then return end
    finish(self)
  end
end

-- Rank 0's order of units, then those that it has not used.
function Rounds:agree_on_order()
  local index, mine = {}, {}
  for i, unit in ipairs(self.units) do index[unit] = i end
  for i, unit in ipairs(self.seen) do mine[i] = index[unit] end
  local list = d.wait(d.values(self.ranks, "broadcast", mine, 0))
  self.seen = #list == 0 and {} or false
  if #list == 0 then return end
  local order, has = {}, {}
  for _, i in ipairs(list) do
    if not has[i] then order[#order + 1] = self.units[i] end
    has[i] = true
  end
  for i, unit in ipairs(self.units) do
    if not has[i] then order[#order + 1] = unit end
  end
  self.order = order
end

-- Does what can be done before this rank wants the next unit: reductions whose turn it is, and
-- whose gradients are complete, and the beginning of the gather after them. A unit that is here
-- may be computed with: it waits for its turn.
local function catch_up(self)
  while self.kind ~= END do
    local action = self.actions[self.next]
    if not action then return end
    if not is_done(self, action) then
      local unit = action.unit
      if action.gathers and not unit.is_here then unit:begin_gather() end
      if action.gathers or unit.pending > 0 then return end
      reduce(self, unit)
    end
    self.next = self.next + 1
  end
end

--- A unit's parameters are wanted: gathers them, and first those of the unit that it is in: both
--- may return the same tensor, where backward begins with the inner one.
function Rounds:request(unit)
  if unit.outer then self:request(unit.outer) end
  unit.is_wanted = self.in_backward ~= false
  if unit.is_here then return end
  local kind = self.in_backward or FORWARD
  if kind == WEIGHTS then kind = INPUTS end
  if self.kind ~= kind or self.actions.place[unit] < self.next then open(self, kind) end
  if kind == FORWARD and self.seen then table.insert(self.seen, unit) end
  while not unit.is_here do
    local action = self.actions[self.next]
    self.next = self.next + 1
    run(self, action, action.unit == unit)
  end
  catch_up(self)
end

--- A gradient of the unit is complete, of a parameter or of what its module was called with. With
--- the last one its parameters are let go, and in their turn reduced.
function Rounds:completed(unit)
  if unit:is_done() and not unit.stays then unit:release() end
  if unit.pending == 0 then catch_up(self) end
end

--- Begins and ends a backward pass of this rank; `what`: of the gradients of "inputs" or "weights"
--- alone (nil: of both).
function Rounds:begin_backward(what)
  local kind = KINDS[what] or BACKWARD
  self.in_backward = kind
  for _, unit in ipairs(self.units) do unit:expect(kind ~= INPUTS) end
  open(self, kind)
end

function Rounds:end_backward()
  self.in_backward = false
  for _, unit in ipairs(self.units) do unit.is_wanted = false end
  if self.kind ~= END then finish(self) end
  release_unused(self) -- a collective in backward may have ended the round
end

local function has_gradients(self)
  for _, unit in ipairs(self.units) do
    if unit:has_gradients() then return true end
  end
  return false
end

local function wanted_at_end(self)
  if self.reduces and has_gradients(self) then return BACKWARD end
  return (self.scopes > 0 or self.in_backward ~= false) and PAUSE or END
end

--- Takes part in all rounds that other ranks want, until none wants any; then no unit is gathered,
--- unless a rank computes with some. All ranks call it before any other collective of them all.
function Rounds:settle()
  if self.kind ~= END then finish(self) end
  local agreed = vote(self, wanted_at_end(self))
  while agreed > PAUSE do
    begin(self, agreed)
    finish(self)
    agreed = vote(self, wanted_at_end(self))
  end
  if agreed == PAUSE then return end
  for unit in next, self.staying do unit:release() end
  for _, unit in ipairs(self.units) do unit.calls = {} end
  self.staying = {}
end

--- Parameters have new values: units that stay are gathered again where ranks compute with them, as
--- in manual optimization. All ranks call it.
function Rounds:renew()
  self:settle()
  local staying = self.staying
  for _, unit in ipairs(self.order) do
    if staying[unit] then
      unit:release()
      unit:gather()
    end
  end
end

return Rounds
