--- stdlib/strategies/DiLoCo.lua: DiLoCo (Douillard et al. 2023): local SGD whose averages are
--- gradients of an outer optimizer.
--
-- Every rank takes `every` steps of its own. What they have changed on average, the weights that
-- the round began with less the mean of all ranks' weights, is the gradient of a step of SGD with
-- Nesterov's momentum, from whose weights all ranks go on. With lr = 1 and momentum = 0 this is the
-- mean itself.
--
-- Streaming DiLoCo (Douillard et al. 2025): the parameters are divided into `fragments` of about
-- equally many elements, each with rounds of its own, which end at different steps; with `overlap`
-- the ranks go on with their steps while a fragment is on its way, and the difference that the
-- outer step has made is added to their weights so many steps later.
--
-- All else is as under LocalSGD: the weights that are evaluated and saved, checkpoints, warmup.
local LocalSGD = require "ltrain.strategies.LocalSGD"
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"

local DiLoCo = LocalSGD:extend("DiLoCo")

local OUTER <const> = {
  lr = { type = "number", default = 0.7, min = 0, doc = "learning rate" },
  momentum = { type = "number", default = 0.9, min = 0, doc = "momentum factor" },
  nesterov = { type = "boolean", default = true, doc = "Nesterov momentum" },
}

--- Its options.
DiLoCo.options = LocalSGD.rows {
  every = { type = "integer", default = 100, min = 1, doc = "number of local steps of a round" },
  outer = { type = "table", default = {},
    doc = "the outer optimizer, SGD: {lr = 0.7, momentum = 0.9, nesterov = true}" },
  fragments = { type = "integer", default = 1, min = 1,
    doc = "parts of the parameters, which are averaged at different steps" },
}

--- DiLoCo{every = 100, outer = {lr = 0.7, momentum = 0.9}, fragments = 1, overlap = 0, ...}
function DiLoCo:init(options)
  local o = ParallelStrategy.init(self, options)
  self.outer = config.check(o.outer, OUTER, "strategies.DiLoCo: outer")
  self.every, self.fragments = o.every, o.fragments
  if self.fragments > self.every then
    errors.blame("strategies.DiLoCo: fragments must be at most every: got %d and %d",
      self.fragments, self.every)
  end
  self:take_rounds(o.every, o)
  self.anchors, self.velocities = {}, {}
end

--- Forgets the outer optimizer's state too.
function DiLoCo:begin_fit()
  LocalSGD.begin_fit(self)
  self.anchors = {} -- by parameter: the weights that the round began with, the same on all ranks
  self.velocities = {} -- by parameter: the outer momentum
end

--- Runs of consecutive parameters with about equally many elements.
function DiLoCo:fragments_of(parameters)
  local total, at, list = 0, 0, {}
  for _, parameter in ipairs(parameters) do total = total + parameter:numel() end
  for i = 1, self.fragments do list[i] = {} end
  for _, parameter in ipairs(parameters) do
    local n = parameter:numel()
    local place = (2 * at + n) * self.fragments // math.max(2 * total, 1)
    table.insert(list[math.min(place + 1, self.fragments)], parameter)
    at = at + n
  end
  return list
end

--- The last fragment's round ends after `every` steps, the others' as much earlier as divides them
--- evenly.
function DiLoCo:ends_round(step, i)
  return (step + 1) % self.every == i * self.every // self.fragments % self.every
end

--- Before the first local step all ranks have the same weights.
function DiLoCo:begin_local_step(optimizer)
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if not self.anchors[parameter] then
      self.anchors[parameter] = parameter:detach():clone()
    end
  end
end

-- The outer step of one parameter: returns the new anchor.
local function step(self, parameter, mean)
  local outer, anchor, velocity = self.outer, self.anchors[parameter], self.velocities[parameter]
  local gradient = anchor - mean
  if outer.momentum > 0 then
    velocity = velocity and velocity:mul_(outer.momentum):add_(gradient) or gradient:clone()
    self.velocities[parameter] = velocity
    gradient = outer.nesterov and gradient:add_(velocity * outer.momentum) or velocity
  end
  return anchor:sub_(gradient * outer.lr)
end

--- The outer step.
function DiLoCo:next_weights(parameters, means)
  local _ <close> = c.no_grad()
  local weights = {}
  for i, parameter in ipairs(parameters) do weights[i] = step(self, parameter, means[i]) end
  return weights
end

-- Copies of what a table has of each parameter, by name.
local function named(self, optimizer, values)
  local parameters, list = {}, {}
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if values[parameter] then
      parameters[#parameters + 1] = parameter
      list[#parameters] = values[parameter]:clone()
    end
  end
  return self:by_name(parameters, list)
end

--- The weights that the rounds began with, and the outer momentum.
function DiLoCo:outer_state(optimizer)
  return { anchors = named(self, optimizer, self.anchors),
    velocities = named(self, optimizer, self.velocities) }
end

--- Restores them.
function DiLoCo:load_outer_state(optimizer, state)
  local is_own = {}
  for _, parameter in ipairs(parameters_of(optimizer)) do is_own[parameter] = true end
  for name, parameter in self.module:named_parameters() do
    if is_own[parameter] then
      local anchor, velocity = state.anchors[name], state.velocities[name]
      self.anchors[parameter] = anchor and anchor:to(parameter.device)
      self.velocities[parameter] = velocity and velocity:to(parameter.device)
    end
  end
end

return DiLoCo
