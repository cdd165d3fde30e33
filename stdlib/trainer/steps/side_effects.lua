--- stdlib/trainer/steps/side_effects.lua: what training_step changes beside gradients, so that a
--- second run of it can be undone: random numbers, buffers, metrics, logged values.
local c = require "ltrain.c"
local loop = require "ltrain.trainer.loop"
local partial_metrics = require "ltrain.trainer.logged.partial_metrics"
local results = require "ltrain.trainer.logged.results"
local walk = require "ltrain.core.walk"

local side_effects = {}

--- Copies of the buffers of a module, a list; nil of one without.
function side_effects.buffers(module)
  local list = {}
  for _, item in ipairs((walk.tensors(module))) do
    if item.buffer then list[#list + 1] = item.value:detach():clone() end
  end
  return #list > 0 and list or nil
end

--- Gives the buffers of a module the values of such a list.
function side_effects.put_buffers(module, list)
  if not list then return end
  local _ <close> = c.allow_update()
  local i = 0
  for _, item in ipairs((walk.tensors(module))) do
    if item.buffer then
      i = i + 1
      item.value:copy_(list[i]:to(item.value.device))
    end
  end
end

--- Random numbers are drawn from a position on that c.runtime.rng_get has returned; of math.random
--- `script_drawn` numbers have been drawn from there.
function side_effects.set_draws(draws, script_drawn)
  c.runtime.rng_set(draws)
  local random = c.runtime.rng_state()
  random.script_drawn = script_drawn
  c.runtime.rng_restore(random)
end

-- A copy of a value of a metric: tensors, and lists of them, are changed in place.
local function copied(value)
  if c.is_tensor(value) then return value:detach():clone() end
  if type(value) ~= "table" or getmetatable(value) ~= nil then return value end
  local copy = {}
  for key, field in next, value do copy[key] = copied(field) end
  return copy
end

-- The fields of the metrics in a module: metric -> its fields.
local function metrics_of(module)
  local kept = {}
  for _, item in ipairs(partial_metrics.of(module)) do
    local fields = {}
    for name, value in next, item.metric do fields[name] = copied(value) end
    kept[item.metric] = fields
  end
  return kept
end

local function put_back(object, fields)
  for name in next, object do
    if fields[name] == nil then rawset(object, name, nil) end
  end
  for name, value in next, fields do rawset(object, name, value) end
end

local function shallow(values)
  local copy = {}
  for name, value in next, values do copy[name] = value end
  return copy
end

--- Keeps all of it; puts it back when the result is closed. Meanwhile self:log goes nowhere.
function side_effects.keep(state)
  local current, module = state.loop, state.module
  local shown, batch, index = current.results, current.batch, current.batch_idx
  local draws, random = c.runtime.rng_get {}, c.runtime.rng_state()
  local buffers, metrics = side_effects.buffers(module), metrics_of(module)
  local values = { [state.callback_metrics] = shallow(state.callback_metrics),
    [state.progress_bar_metrics] = shallow(state.progress_bar_metrics) }
  current.results = results.new(true)
  return setmetatable({}, { __close = function()
    current.results = shown
    loop.set_batch(state, batch, index)
    side_effects.put_buffers(module, buffers)
    for metric, fields in next, metrics do put_back(metric, fields) end
    for of, fields in next, values do put_back(of, fields) end
    side_effects.set_draws(draws, random.script_drawn)
  end })
end

return side_effects
