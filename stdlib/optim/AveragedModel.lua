-- stdlib/optim/AveragedModel.lua: a module with averaged weights of another module: their mean over
-- the updates (SWA), or an exponential moving average (EMA).
--
--   local lt = require "ltrain"
--   local net = lt.nn.Linear(1, 1, {bias = false})
--   local ema = lt.optim.AveragedModel(net, {decay = 0.9})
--   lt.allow_update(function() net.weight:fill_(1.0) end)
--   ema:update_parameters(net) -- the first is taken as it is
--   lt.allow_update(function() net.weight:fill_(2.0) end)
--   ema:update_parameters(net)
--   print(("%.1f"):format(ema.module.weight:item()))
--   -- prints: 1.1
--
-- Calling it computes the module's forward with the averaged weights. Its parameters require no
-- gradients; its state, with the number of updates, is saved like that of any module. Recompute
-- batch-norm statistics with `optim.update_bn` rather than averaging them.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"
local walk = require "ltrain.core.walk"

local AveragedModel = Module:extend("AveragedModel")

AveragedModel.__arguments = "model | device avg_fn (multi_avg_fn) use_buffers"

local OPTIONS <const> = {
  decay = { type = "number", min = 0, max = 1,
    doc = "decay of an exponential moving average; without it all updates have equal weight" },
  avg_fn = { type = "function",
    doc = "instead: function(average, current, n) that returns the new average" },
  use_buffers = { type = "boolean", default = false,
    doc = "also average buffers; otherwise they are the module's latest" },
  device = { type = "string", doc = "where the averages are; by default where the module is" },
}

local copy

-- Tensors and modules are copied, once each; trainers and other objects are shared.
local function copy_fields(from, to, made)
  for key, value in next, from do
    if key ~= "trainer" then rawset(to, key, copy(value, made)) end
  end
  return to
end

function copy(value, made)
  if made[value] ~= nil then return made[value] end
  if c.is_tensor(value) then
    made[value] = value:detach():clone()
  elseif type(value) == "table" and (walk.is_module(value) or getmetatable(value) == nil) then
    made[value] = setmetatable({}, getmetatable(value))
    copy_fields(value, made[value], made)
  else
    return value
  end
  return made[value]
end

--- AveragedModel(net, {decay = 0.999})
function AveragedModel:init(model, options)
  if not walk.is_module(model) then
    errors.blame("optim.AveragedModel: the first argument must be a module: got %s",
      errors.show(model))
  end
  local o = config.check(options, OPTIONS, "optim.AveragedModel")
  if o.decay and o.avg_fn then
    errors.blame("optim.AveragedModel: decay and avg_fn: only one of them")
  end
  local made = {}
  for _, parameter in ipairs(model:parameters()) do
    made[parameter] = c.parameter(parameter:detach():clone(), { requires_grad = false })
  end
  self.decay, self.avg_fn, self.use_buffers = o.decay, o.avg_fn, o.use_buffers
  self.module = copy(model, made)
  self:register_buffer("n_averaged", c.zeros({}, { dtype = "i64" }))
  if o.device then self:to(o.device) end
end

function AveragedModel:forward(...)
  local y = table.pack(self.module(...))
  return table.unpack(y, 1, y.n)
end

-- average + weight * (current - average), exact at both ends.
local function lerp(average, current, weight)
  if weight < 0.5 then return average + (current - average) * weight end
  return current - (current - average) * (1 - weight)
end

local function averaged(self, average, current, n)
  if self.avg_fn then return self.avg_fn(average, current, n) end
  return lerp(average, current, self.decay and 1 - self.decay or 1 / (n + 1))
end

-- Pairs of the tensors of both modules, by their paths.
local function pairs_of(own, theirs, what)
  local list = {}
  for i, name in ipairs(own.names) do
    if theirs.names[i] ~= name or #own ~= #theirs then
      errors.blame("AveragedModel: update_parameters: the model has other %s: '%s' stands where "
        .. "'%s' was", what, tostring(theirs.names[i]), name)
    end
    list[i] = { own[i], theirs[i]:detach() }
  end
  return list
end

--- Updates the averages with the weights of `model`; call it after an optimizer step, or an epoch.
function AveragedModel:update_parameters(model)
  local _ <close> = c.allow_update()
  local n = self.n_averaged:item()
  for _, pair in ipairs(pairs_of(self.module:parameters(), model:parameters(), "parameters")) do
    local new = pair[2]:to(pair[1].device)
    if n > 0 then new = averaged(self, pair[1]:detach(), new, n) end
    pair[1]:copy_(new)
  end
  for _, pair in ipairs(pairs_of(self.module:buffers(), model:buffers(), "buffers")) do
    local new = pair[2]:to(pair[1].device)
    if n > 0 and self.use_buffers and is_float(new.dtype) then
      new = averaged(self, pair[1]:detach(), new, n)
    end
    pair[1]:copy_(new)
  end
  self.n_averaged:add_(1)
end

local function exchange(own, theirs, what)
  for _, pair in ipairs(pairs_of(own, theirs, what)) do
    local before = pair[1]:detach():clone()
    pair[1]:copy_(pair[2])
    pair[2]:copy_(before)
  end
end

--- Swaps the averages with the weights (and buffers) of `model`; a second call undoes it.
function AveragedModel:swap(model)
  local _ <close> = c.allow_update()
  exchange(self.module:parameters(), model:parameters(), "parameters")
  exchange(self.module:buffers(), model:buffers(), "buffers")
end

return AveragedModel
