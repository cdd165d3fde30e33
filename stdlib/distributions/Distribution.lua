-- stdlib/distributions/Distribution.lua: the base class of probability distributions.
--
--   local lt = require "ltrain"
--   local normal = lt.distributions.Normal(lt.zeros(3), 2.0)
--   print(normal:sample{4}.shape[1], normal:log_prob(0.0)[1]:item() < 0, normal.variance[1]:item())
--   -- prints: 4	true	4.0
--
-- Parameters are tensors or numbers, which broadcast to `batch_shape`; a sample has the shape
-- sample_shape, batch_shape, event_shape. Random numbers are those of lt.seed: the same on each
-- device. `mean` and `variance` are fields.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local Distribution = class.extend(nil, "Distribution")

Distribution.extend = class.extend

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

-- The first tensor of a list says dtype and device of numbers.
local function like_of(list)
  for _, value in ipairs(list) do
    if c.is_tensor(value) then return { dtype = value.dtype, device = value.device } end
  end
  return { dtype = "f32" }
end

--- Parameters as tensors of one shape, which becomes `batch_shape`. For subclasses: `names` are in
--- the order of the values.
function Distribution:set_parameters(names, values)
  local options, shapes = like_of(values), {}
  for i = 1, #names do
    local value = values[i]
    if type(value) == "number" then value = c.full({}, value, options) end
    if not c.is_tensor(value) then
      errors.blame("%s: %s must be a tensor or a number: got %s", where(self), names[i],
        errors.show(value))
    end
    values[i], shapes[i] = value, value.shape
  end
  self.batch_shape, self.event_shape = broadcast(self, shapes), {}
  for i, name in ipairs(names) do self[name] = values[i]:expand(self.batch_shape) end
  self.options = options
end

--- sample_shape, batch_shape and event_shape in one list.
function Distribution:shape_of(sample_shape)
  local shape = {}
  for _, part in ipairs { sample_shape or {}, self.batch_shape, self.event_shape } do
    table.move(part, 1, #part, #shape + 1, shape)
  end
  return shape
end

--- Samples through which gradients reach the parameters.
function Distribution:rsample(sample_shape)
  errors.blame("%s: rsample%s: it has no samples with gradients: use sample, and log_prob in the "
    .. "loss", where(self), sample_shape and " of a shape" or "")
end

--- Samples without gradients. `sample_shape` (optional): a list of sizes.
function Distribution:sample(sample_shape)
  local _ <close> = c.no_grad()
  return self:rsample(sample_shape)
end

--- The logarithm of the density, or of the probability, at `value`.
function Distribution:log_prob(value)
  errors.blame("%s: log_prob is not defined: of %s", where(self), errors.show(value))
end

--- The entropy, in nats.
function Distribution:entropy()
  errors.blame("%s: entropy is not defined", where(self))
end

return Distribution
