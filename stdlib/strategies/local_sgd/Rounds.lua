--- stdlib/strategies/local_sgd/Rounds.lua: when the parameters of an optimizer are averaged under
--- LocalSGD, and averages that are on their way.
--
-- The strategy says in which fragments (fragments_of), after which local steps (ends_round), and
-- which weights follow from a mean (next_weights).
local OverlappedAverage = require "ltrain.strategies.local_sgd.OverlappedAverage"
local averaging = require "ltrain.strategies.local_sgd.averaging"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local parameters_of = require "ltrain.core.parameters_of"

local Rounds = class.extend(nil, "Rounds")

--- Those of an optimizer under a strategy.
function Rounds:init(strategy, optimizer)
  self.strategy, self.optimizer = strategy, optimizer
  self.fragments = strategy:fragments_of(parameters_of(optimizer))
  self.averages = {} -- on their way, by number of their fragment
end

local function average_now(self, fragment)
  local strategy = self.strategy
  local list = averaging.in_some(fragment, strategy.apart[self.optimizer])
  averaging.average(strategy.reducer, list)
  local values = strategy:next_weights(list, list)
  if values ~= list then averaging.write(list, values) end
  if #self.fragments == 1 then strategy.apart[self.optimizer] = nil end
end

-- Adds the difference that an average has made to the weights that went into it.
local function apply(self, i)
  local one = self.averages[i]:wait()
  local _ <close> = c.no_grad()
  local _ <close> = c.allow_update()
  local values = self.strategy:next_weights(one.parameters, one.means)
  for k, parameter in ipairs(one.parameters) do parameter:add_(values[k] - one.before[k]) end
  self.averages[i] = nil
end

-- Averages a fragment, or begins to.
local function average(self, i, step)
  local strategy, fragment = self.strategy, self.fragments[i]
  if strategy.overlap == 0 then return average_now(self, fragment) end
  local one = OverlappedAverage(fragment, strategy.apart[self.optimizer], strategy.background)
  one.due = step + strategy.overlap
  self.averages[i] = one
end

--- After a local step, counted from 0. All ranks call it.
function Rounds:end_step(step)
  for i, fragment in ipairs(self.fragments) do
    if self.averages[i] and self.averages[i].due == step then apply(self, i) end
    if #fragment > 0 and self.strategy:ends_round(step, i) then average(self, i, step) end
  end
end

--- Applies what is on its way. All ranks call it.
function Rounds:finish()
  for i = 1, #self.fragments do
    if self.averages[i] then apply(self, i) end
  end
end

--- What is on its way, each by number of its fragment: what is the same on all ranks, and what this
--- rank has put into it. All ranks call it.
function Rounds:state()
  local shared, own, strategy = {}, {}, self.strategy
  for i = 1, #self.fragments do
    local one = self.averages[i] and self.averages[i]:wait()
    if one then
      shared[tostring(i)] = { due = one.due, means = strategy:by_name(one.parameters, one.means) }
      own[tostring(i)] = strategy:by_name(one.parameters, one.before)
    end
  end
  return shared, own
end

--- Restores it. `own`: what this rank had put into it; nil: its weights are the mean of the ranks',
--- so that it takes the means for it.
function Rounds:load(shared, own)
  for key, saved in next, shared do
    local list, before, means = {}, {}, {}
    for name, parameter in self.strategy.module:named_parameters() do
      local mean = saved.means[name]
      if mean then
        local n = #list + 1
        list[n], means[n] = parameter, mean:to(parameter.device)
        before[n] = own and own[key][name]:to(parameter.device) or means[n]
      end
    end
    local one = OverlappedAverage.arrived(list, before, means)
    one.due = saved.due
    self.averages[math.tointeger(tonumber(key))] = one
  end
end

return Rounds
