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

local function empty() return { step = 0 } end

-- States that a parameter does not have yet, of its first step or of an option that was changed.
local function complete(self, group, state, parameter, slots)
  for _, slot in ipairs(slots) do
    if state[slot] == nil then
      state[slot] = c.full_like(parameter, self._initial and self:_initial(group, slot) or 0,
        { dtype = Optimizer.state_dtype(parameter) })
    end
  end
end

-- Places of the parameters by their step, and by what else they have counted; mostly one list.
local function by_step(states, counted)
  local keys, places = {}, {}
  for i, state in ipairs(states) do
    local key = counted and ("%d %s"):format(state.step, state[counted]) or state.step
    if not places[key] then
      places[key] = {}
      keys[#keys + 1] = key
    end
    table.insert(places[key], i)
  end
  return keys, places
end

-- The parameters of some places, their gradients and their states, as the operation takes them.
local function lists_of(places, params, grads, states, slots)
  local p, g, kinds = {}, {}, {}
  for k = 1, #slots do kinds[k] = {} end
  for n, i in ipairs(places) do
    p[n], g[n] = params[i], grads[i]
    for k, slot in ipairs(slots) do kinds[k][n] = states[i][slot] end
  end
  return Optimizer.join(p, g, table.unpack(kinds))
end

local function count(self, state, step, counted)
  self:remember(state, "step")
  state.step = step
  for slot, value in next, counted or {} do
    self:remember(state, slot)
    state[slot] = value
  end
end

local function update(self, group)
  local op, slots = self:_rule(group)
  local params, grads, states = self:active(group, empty)
  for i, state in ipairs(states) do complete(self, group, state, params[i], slots) end
  local keys, places = by_step(states, self.counted)
  for _, key in ipairs(keys) do
    local first = states[places[key][1]]
    local step = first.step + 1
    local numbers, counted = self:_numbers(group, step, first)
    if op ~= "adam_step" then numbers.states = #slots end
    numbers.maximize = group.maximize
    local list = lists_of(places[key], params, grads, states, slots)
    c[op](self:checked(list, numbers), numbers)
    for _, i in ipairs(places[key]) do count(self, states[i], step, counted) end
  end
end

--- Gives a class that update.
return function(class)
  class.elementwise = true
  class.update = update
  class.checked_update = class.update
  return class
end
