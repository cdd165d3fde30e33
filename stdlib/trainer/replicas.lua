--- stdlib/trainer/replicas.lua: what the optimizers step is what the module holds.
--
-- Looked at with each step: whether the parameters still hang where they did. A walk of the module
-- would cost more than a small step, so the places are kept and looked at one by one; a parameter
-- that is new needs a call of lt.parameter, which is counted.
local boundary = require "ltrain.trainer.boundary"
local c = require "ltrain.c"
local walk = require "ltrain.core.walk"

local replicas = {}

-- Adds the places on the way from `holder` along the keys from number `first` on.
local function add_places(places, seen, holder, keys, first)
  for i = first, #keys do
    local key = keys[i]
    local known = seen[holder] or {}
    seen[holder] = known
    local value = rawget(holder, key)
    if not known[key] then
      known[key] = true
      local n = #places.holders + 1
      places.holders[n], places.keys[n], places.values[n] = holder, key, value
    end
    holder = value
  end
end

-- All places of tables, modules and tensors on the ways from the module to its parameters.
local function places_of(module)
  local places, seen = { holders = {}, keys = {}, values = {} }, {}
  for _, entry in ipairs(walk.modules(module)) do
    for _, list in ipairs { entry.tensors, entry.children } do
      for _, item in ipairs(list) do
        if not item.buffer then
          add_places(places, seen, entry.module, item.keys, #entry.keys + 1)
        end
      end
    end
  end
  return places
end

local function are_as_before(places)
  local holders, keys, values = places.holders, places.keys, places.values
  for i = 1, #holders do
    if not rawequal(holders[i][keys[i]], values[i]) then return false end
  end
  return true
end

--- Raises when a parameter was lost, replaced, or is new and in no optimizer.
function replicas.check_places(state)
  local made = c.runtime.parameters_made()
  if state.places and made == state.parameters_made and are_as_before(state.places) then return end
  boundary.check_parameters(state, ("optimizer step %d"):format(state.trainer.global_step + 1))
  state.places, state.parameters_made = places_of(state.module), made
end

return replicas
