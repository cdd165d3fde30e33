-- stdlib/distributions/Distribution.lua: the base class of probability distributions.
--
--   local lt = require "ltrain"
--   local normal = lt.distributions.Normal(lt.zeros(3), 2.0)
--   print(normal:sample{4}.shape[1], normal:log_prob(0.0)[1]:item() < 0, normal.variance[1]:item())
--   -- prints: 4	true	4.0
--
-- Parameters are tensors or numbers, which broadcast to `batch_shape`; a sample has the shape
-- sample_shape, batch_shape, event_shape. Random numbers depend on lt.seed, and are the same on
-- each device. `mean`, `mode`, `variance` and `stddev` are fields. Parameters are passed by
-- position, or by name in one table, Normal{loc = 0.0, scale = 1.0}.
--
-- Parameters and the arguments of log_prob are checked, unless a distribution is created with
-- {validate_args = false}: Normal(0.0, -1.0) is an error, raised immediately on the CPU; on other
-- devices, without synchronization, when a later distribution is used.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local constraints = require "ltrain.distributions.constraints"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"

local Distribution = class.extend(nil, "Distribution")

-- What parameters must satisfy, by name, and what values must: rows of constraints.lua.
Distribution.arg_constraints, Distribution.support = {}, constraints.real

local OPTIONS <const> = {
  validate_args = { type = "boolean", doc = "whether parameters and values are checked (true)" },
}
local validates = true

-- Fields that are computed when they are read, with the gradients of that moment: `_mean` gives
-- `mean`.
local PROPERTIES <const> = { mean = true, mode = true, variance = true, stddev = true }

--- Creates a subclass.
function Distribution.extend(parent, name)
  local new = class.extend(parent, name)
  new.__index = function(self, key)
    local value = new[key]
    if value == nil and PROPERTIES[key] then value = self["_" .. key](self) end
    return value
  end
  return new
end

local function where(self) return "distributions." .. getmetatable(self).__name end

-- The shape that shapes broadcast to.
local function broadcast(self, shapes)
  local ndim, shape = 0, {}
  for _, one in ipairs(shapes) do ndim = math.max(ndim, #one) end
  for d = 1, ndim do
    shape[d] = 1
    for _, one in ipairs(shapes) do
      local size = one[#one - ndim + d] or 1
      if size ~= 1 and shape[d] ~= 1 and size ~= shape[d] then
        errors.blame("%s: the shapes of the parameters do not broadcast: %s", where(self),
          errors.show(shapes))
      elseif size ~= 1 then
        shape[d] = size
      end
    end
  end
  return shape
end

-- The first tensor of a list says the device of numbers, the first floating one the dtype of
-- numbers and integers.
local function like_of(list)
  local like = {}
  for _, value in ipairs(list) do
    if c.is_tensor(value) then
      like.device = like.device or value.device
      like.dtype = like.dtype or is_float(value.dtype) and value.dtype or nil
    end
  end
  like.dtype = like.dtype or "f32"
  return like
end

--- Sets whether distributions created from now on check parameters and values if `validate_args` is
--- not given; initially true.
function Distribution.set_default_validate_args(value)
  validates = config.argument(value, "boolean", "Distribution.set_default_validate_args", "value")
end

-- Reads the options of a constructor.
function Distribution:_set_options(options)
  local own = config.check(options, OPTIONS, where(self)).validate_args
  if own == nil then own = validates end
  self.validate_args = own
end

-- Raises unless the parameter `name` satisfies its constraint.
function Distribution:_validate_parameter(name, value)
  local constraint = self.validate_args and self.arg_constraints[name]
  if constraint then constraints.check(where(self), name, value, constraint, self) end
end

--- Returns `value` as a tensor; raises an error unless it is in the support. For subclasses, in
--- log_prob.
function Distribution:validate_sample(value)
  if type(value) == "number" then value = c.full({}, value, self.options) end
  if not c.is_tensor(value) then
    errors.blame("%s: value must be a tensor or a number: got %s", where(self), errors.show(value))
  end
  if self.validate_args then constraints.check(where(self), "value", value, self.support, self) end
  return value
end

--- Broadcasts the parameters to tensors of one shape, which becomes `batch_shape`. For subclasses:
--- `names` are in the order of the values, `options` those of the constructor, `defaults` by name.
function Distribution:set_parameters(names, values, options, defaults)
  self:_set_options(options)
  for i, name in ipairs(names) do
    if values[i] == nil and defaults then values[i] = defaults[name] end
  end
  local like, shapes = like_of(values), {}
  for i = 1, #names do
    local value = values[i]
    if type(value) == "number" then value = c.full({}, value, like) end
    if not c.is_tensor(value) then
      errors.blame("%s: %s must be a tensor or a number: got %s%s", where(self), names[i],
        errors.show(value), config.named(value, names[i]))
    end
    if not is_float(value.dtype) then value = value:to(like.dtype) end
    values[i], shapes[i] = value, value.shape
  end
  self.batch_shape, self.event_shape = broadcast(self, shapes), {}
  for i, name in ipairs(names) do self[name] = values[i]:expand(self.batch_shape) end
  for i, name in ipairs(names) do self:_validate_parameter(name, values[i]) end
  self.options = like
end

--- The same for parameters whose last dim is the event dim. For subclasses.
function Distribution:set_vector(names, values, options)
  self:set_parameters(names, values, options)
  if #self.batch_shape == 0 then
    errors.blame("%s: the last dim of %s is that of an event: got a number", where(self), names[1])
  end
  self.event_shape = { table.remove(self.batch_shape) }
end

--- Returns sample_shape, batch_shape and event_shape concatenated.
function Distribution:shape_of(sample_shape)
  local shape = {}
  for _, part in ipairs { sample_shape or {}, self.batch_shape, self.event_shape } do
    table.move(part, 1, #part, #shape + 1, shape)
  end
  return shape
end

--- Returns this distribution expanded to a batch_shape that its own broadcasts to.
function Distribution:expand(batch_shape)
  local new, own = setmetatable({}, getmetatable(self)), #self.batch_shape
  -- What a distribution keeps begins with its batch_shape: tensors, and distributions.
  local function shape_of(shape)
    return table.move(shape, own + 1, #shape, #batch_shape + 1, { table.unpack(batch_shape) })
  end
  for key, value in next, self do
    if c.is_tensor(value) then
      value = value:expand(shape_of(value.shape))
    elseif class.is_a(value, Distribution) then
      value = value:expand(shape_of(value.batch_shape))
    end
    new[key] = value
  end
  new.batch_shape = { table.unpack(batch_shape) }
  return new
end

--- Reparametrized samples: gradients flow to the parameters.
function Distribution:rsample(sample_shape)
  errors.blame("%s: rsample%s: it has no samples with gradients: use sample, and log_prob in the "
    .. "loss", where(self), sample_shape and " of a shape" or "")
end

--- Samples without gradients. `sample_shape` (optional): a list of sizes.
function Distribution:sample(sample_shape)
  local _ <close> = c.no_grad()
  return self:rsample(sample_shape)
end

local function undefined(name)
  return function(self) errors.blame("%s: %s is not defined", where(self), name) end
end

--- The logarithm of the density, or of the probability, at `value`.
function Distribution:log_prob(value)
  errors.blame("%s: log_prob is not defined: of %s", where(self), errors.show(value))
end

--- The probability of values up to `value`.
function Distribution:cdf(value)
  errors.blame("%s: cdf is not defined: of %s", where(self), errors.show(value))
end

--- The value whose cdf is `value`, a probability.
function Distribution:icdf(value)
  errors.blame("%s: icdf is not defined: of %s", where(self), errors.show(value))
end

--- The entropy, in nats.
function Distribution:entropy()
  errors.blame("%s: entropy is not defined", where(self))
end

for _, name in ipairs { "mean", "mode", "variance" } do
  Distribution["_" .. name] = undefined(name)
end

function Distribution:_stddev() return self.variance:sqrt() end

return Distribution
