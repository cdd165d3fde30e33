-- stdlib/optim/elementwise_update.lua: the `update` of optimizers whose rule is elementwise
-- (runtime/ops/updates.def): one fused operation for all parameters that have taken the same number
-- of steps.
--
-- Such a class has the fields
--   _rule(self, group)     name of the operation, and of its kinds of state in its order
--   _numbers(self, group, step, state)
--                          what the operation gets for a step, counted from 1; and the new values
--                          of those slots of `state` that are numbers (one of them is `counted`)
--   _initial(self, group, slot)
--                          (optional) what a state begins with; 0
-- The operations are rows of runtime/ops/updates.def, and adam_step.

local Optimizer = require "ltrain.optim.Optimizer"
local c = require "ltrain.c"

local NONE <const> = {}

local function empty() return { step = 0 } end

-- What a kind of state begins with, of a parameter's first step or of an option that was changed.
local function begin(self, group, parameter, slot)
  return c.full_like(parameter, self._initial and self:_initial(group, slot) or 0,
    { dtype = Optimizer.state_dtype(parameter) })
end

-- Parameters, gradients and states in one list, as the operation takes them; `list` has the
-- parameters.
local function add_tensors(self, group, list, grads, states, slots)
  local n = #list
  table.move(grads, 1, n, n + 1, list)
  for k = 1, #slots do
    local slot, at = slots[k], (k + 1) * n
    for i = 1, n do
      local state = states[i]
      local kept = state[slot]
      if kept == nil then
        kept = begin(self, group, list[i], slot)
        state[slot] = kept
      end
      list[at + i] = kept
    end
  end
end

-- Where a step that the device may leave out is under way, its counts can be taken back.
local function remember(self, states, counted)
  for _, state in ipairs(states) do
    self:remember(state, "step")
    for slot in next, counted or NONE do self:remember(state, slot) end
  end
end

-- A step of parameters that have taken equally many.
local function update_together(self, group, params, grads, states)
  local op, slots = self:_rule(group)
  local first = states[1]
  local step = first.step + 1
  add_tensors(self, group, params, grads, states, slots)
  local numbers, counted = self:_numbers(group, step, first)
  if op ~= "adam_step" then numbers.states = #slots end
  numbers.maximize = group.maximize
  c[op](self:checked(params, numbers), numbers)
  if self._deferred.recording then remember(self, states, counted) end
  for i = 1, #states do
    local state = states[i]
    state.step = step
    for slot, value in next, counted or NONE do state[slot] = value end
  end
end

-- What a parameter has counted: those that differ are not updated together.
local function count_of(state, counted)
  return counted and ("%d %s"):format(state.step, state[counted]) or state.step
end

local function are_even(states, counted)
  local first = count_of(states[1], counted)
  for i = 2, #states do
    if count_of(states[i], counted) ~= first then return false end
  end
  return true
end

-- The same lists for each count, in the order in which these come.
local function by_count(counted, params, grads, states)
  local list, known = {}, {}
  for i, state in ipairs(states) do
    local key = count_of(state, counted)
    local part = known[key]
    if not part then
      part = { params = {}, grads = {}, states = {} }
      known[key], list[#list + 1] = part, part
    end
    local n = #part.params + 1
    part.params[n], part.grads[n], part.states[n] = params[i], grads[i], state
  end
  return list
end

local function update(self, group)
  local params, grads, states = self:active(group, empty)
  if #params == 0 then return end
  if are_even(states, self.counted) then -- as a rule
    return update_together(self, group, params, grads, states)
  end
  for _, part in ipairs(by_count(self.counted, params, grads, states)) do
    update_together(self, group, part.params, part.grads, part.states)
  end
end

--- Gives a class that update.
return function(class)
  class.elementwise = true
  class.update = update
  class.checked_update = class.update
  return class
end
