-- stdlib/optim/GradScaler.lua: scales losses so that f16 gradients do not underflow, and skips
-- steps whose gradients overflowed.
--
-- P. Micikevicius and others, Mixed Precision Training, 2018.
--
--   local lt = require "ltrain"
--   local net = lt.nn.Linear(4, 1)
--   local optimizer, scaler = lt.optim.SGD(net:parameters(), {lr = 0.1}), lt.GradScaler()
--   for _ = 1, 3 do
--     optimizer:zero_grad()
--     local loss = lt.autocast("f16", function()
--       local y = net(lt.ones(8, 4))
--       return y:square():mean()
--     end)
--     local scaled = scaler:scale(loss)
--     scaled:backward()
--     scaler:step(optimizer)
--     scaler:update()
--   end
--   print(scaler:get_scale() <= 65536)
--   -- prints: true
--
-- The scale, the counter and the result of the check are tensors on the device, without
-- synchronization: the device skips the update, and the host, which has counted the step, corrects
-- this some steps later (skipped_steps.lua). On the CPU, and for optimizers that define `update`,
-- the host reads the result at once.

local Optimizer = require "ltrain.optim.Optimizer"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local gradients_of = require "ltrain.core.gradients_of"
local schema = require "ltrain.core.schema"
local skipped_steps = require "ltrain.optim.skipped_steps"
local tree = require "ltrain.core.tree"

local GradScaler = class.extend(nil, "GradScaler")

local INF <const> = math.huge

local OPTIONS <const> = {
  init_scale = { type = "number", default = 65536.0, above = 0, doc = "initial scale" },
  growth_factor = { type = "number", default = 2.0, above = 1,
    doc = "factor of the scale after growth_interval steps without an overflow" },
  backoff_factor = { type = "number", default = 0.5, above = 0, below = 1,
    doc = "factor of the scale after an overflow" },
  growth_interval = { type = "integer", default = 2000, min = 1,
    doc = "steps without an overflow until the scale grows" },
  enabled = { type = "boolean", default = true, doc = "false: no effect" },
  device = { type = "string", doc = "as in PyTorch; the scale is on the losses' device" },
}

GradScaler.__arguments = "| device init_scale growth_factor backoff_factor growth_interval enabled"

GradScaler.options = OPTIONS

--- lt.GradScaler{init_scale = 65536} or lt.GradScaler("cuda")
function GradScaler:init(options)
  local o = config.check(options, OPTIONS, "GradScaler")
  for name in next, OPTIONS do self["_" .. name] = o[name] end
  self._tracked = 0 -- steps since the scale changed, until that is a tensor
  self._steps = setmetatable({}, { __mode = "k" }) -- optimizer -> what was done since update
end

--- Returns whether it is enabled.
function GradScaler:is_enabled() return self._enabled end

-- The scale is on the device of the first thing that is scaled.
local function scale_on(self, device)
  if not self._scale then
    -- From the host: on a device that records, the first step is a program of others.
    self._scale = c.tensor(self._init_scale, { dtype = "f32" }):to(device)
    self._tracker = c.tensor(self._tracked, { dtype = "f32" }):to(device)
  end
  return self._scale:to(device)
end

--- Returns a loss, or a table of losses, times the scale.
function GradScaler:scale(outputs)
  if not self._enabled then return outputs end
  local scaled = tree.map(outputs, function(leaf)
    if c.is_tensor(leaf) then return leaf * scale_on(self, leaf.device) end
    errors.blame("GradScaler: scale: outputs must be tensors: got %s", errors.show(leaf))
  end)
  return scaled
end

-- The record of an optimizer since the last update.
local function step_of(self, optimizer)
  if type(optimizer) ~= "table" or type(optimizer.param_groups) ~= "table" then
    errors.blame("GradScaler: an optimizer is needed: got %s", errors.show(optimizer))
  end
  self._steps[optimizer] = self._steps[optimizer] or { stage = "ready" }
  return self._steps[optimizer]
end

local function check_dtypes(optimizer)
  for _, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      if parameter.dtype == "f16" and parameter.grad then
        errors.blame("GradScaler: the gradient of %s is f16: only those of f32 parameters can be "
          .. "unscaled without losing what the scale was for",
          group.names and ("'%s'"):format(group.names[i]) or "parameter " .. i)
      end
    end
  end
end

-- Multiplies the gradients by 1 / scale; returns whether some are not finite, a bool on their
-- device; nil where there are none.
local function unscale(self, optimizer)
  local gradients = gradients_of(optimizer.param_groups)
  if #gradients == 0 and not optimizer.grad_norm then return nil end
  local _ <close> = c.no_grad()
  local norm = optimizer.grad_norm and optimizer:grad_norm(INF) or c.grads_norm(gradients, INF)
  local inverse = scale_on(self, norm.device):reciprocal()
  if optimizer.scale_gradients then
    optimizer:scale_gradients(inverse)
  else
    c.grads_scale(table.move(gradients, 1, #gradients, 2, { inverse }))
  end
  return norm:isfinite():logical_not()
end

--- Divides the gradients of an optimizer by the scale, in place, for clipping; otherwise `step`
--- does it.
function GradScaler:unscale_(optimizer)
  if not self._enabled then return end
  local record = step_of(self, optimizer)
  if record.stage == "unscaled" then
    errors.blame("GradScaler: unscale_ was called on this optimizer already since the last update")
  elseif record.stage == "stepped" then
    errors.blame("GradScaler: unscale_ is called after step: call update first")
  end
  check_dtypes(optimizer)
  record.found, record.stage = unscale(self, optimizer), "unscaled"
end

--- Makes the device skip the next step of an optimizer, whose gradients are unscaled, if some are
--- not finite, without synchronization: `hear` as in left_out.begin. Returns false if this is not
--- possible: then use `found`.
function GradScaler:check_later(optimizer, hear)
  local found = step_of(self, optimizer).found
  if not found or not skipped_steps.suits(optimizer, found) then return false end
  optimizer:check_later(found, hear)
  return true
end

--- Returns whether an unscaled gradient of an optimizer is not finite; synchronizes.
function GradScaler:found(optimizer)
  local found = step_of(self, optimizer).found
  return found ~= nil and found:item()
end

--- Takes a step with unscaled gradients, unless some are not finite. Returns the result of the
--- optimizer's step.
function GradScaler:step(optimizer, closure)
  if not self._enabled then return optimizer:step(closure) end
  if closure ~= nil then
    errors.blame("GradScaler: step: a closure is not supported: call it before")
  end
  local record = step_of(self, optimizer)
  if record.stage == "stepped" then
    errors.blame("GradScaler: step was called on this optimizer already since the last update")
  elseif record.stage == "ready" then
    self:unscale_(optimizer)
  end
  record.stage = "stepped"
  local usual = optimizer.step == Optimizer.step
  if not (usual and self:check_later(optimizer)) and self:found(optimizer) then
    c.runtime.batch_done()
    return nil
  end
  local result = optimizer:step()
  return result
end

-- Whether any gradient since the last update was not finite, on the scale's device; nil without
-- gradients.
local function found_any(self)
  local any
  for _, record in next, self._steps do
    local found = record.found and record.found:to(self._scale.device)
    if found then any = any and any:logical_or(found) or found end
  end
  if next(self._steps) == nil then
    errors.blame("GradScaler: update: no gradients were unscaled since the last update")
  end
  return any
end

local function set_scale(self, scale)
  local number = c.is_tensor(scale) and scale:item() or scale
  config.argument(number, "number", "GradScaler: update", "new_scale", { above = 0 })
  scale_on(self, self._scale and self._scale.device or "cpu")
  self._scale = c.full_like(self._scale, number)
end

-- `found`: whether a gradient has overflowed, a bool on the scale's device.
local function adapt_scale(self, found)
  local scale, steps = self._scale, self._tracker + 1
  local due, grown = steps:ge(self._growth_interval), scale * self._growth_factor
  grown = c.where(due:logical_and(grown:isfinite()), grown, scale)
  scale:copy_(c.where(found, scale * self._backoff_factor, grown)) -- a CUDA graph has its address
  self._tracker = steps:masked_fill(found:logical_or(due), 0)
end

--- Ends an iteration: the scale shrinks after an overflow, and grows after growth_interval steps
--- without one; or it becomes `new_scale`.
function GradScaler:update(new_scale)
  if not self._enabled then return end
  local _ <close> = c.no_grad()
  if new_scale ~= nil then
    set_scale(self, new_scale)
  else
    local found = found_any(self)
    if found then adapt_scale(self, found) end
  end
  for optimizer in next, self._steps do self._steps[optimizer] = nil end
end

--- Returns the tensor of the scale, which `update` writes; nil before something was scaled.
function GradScaler:scale_tensor() return self._scale end

--- Returns the scale, a number; synchronizes.
function GradScaler:get_scale()
  if not self._enabled then return 1.0 end
  return self._scale and self._scale:item() or self._init_scale
end

--- Returns { scale =, growth_factor =, backoff_factor =, growth_interval =, _growth_tracker = }.
function GradScaler:state_dict()
  if not self._enabled then return {} end
  return {
    scale = self:get_scale(), growth_factor = self._growth_factor,
    backoff_factor = self._backoff_factor, growth_interval = self._growth_interval,
    _growth_tracker = math.tointeger(self._tracker and self._tracker:item() or self._tracked),
  }
end

local STATE <const> = { scale = "number", growth_factor = "number", backoff_factor = "number",
  growth_interval = "count", _growth_tracker = "count" }

--- Restores it.
function GradScaler:load_state_dict(state)
  if not self._enabled then return end
  if type(state) ~= "table" or next(state) == nil then
    errors.blame("GradScaler: load_state_dict: there is no state: a scaler that is not enabled has "
      .. "none: got %s", errors.show(state))
  end
  schema.check(state, STATE, "GradScaler")
  self._init_scale, self._tracked = state.scale, state._growth_tracker
  self._growth_factor, self._backoff_factor = state.growth_factor, state.backoff_factor
  self._growth_interval = state.growth_interval
  self._scale, self._tracker = nil, nil -- made on the device of what is scaled next
end

return GradScaler
