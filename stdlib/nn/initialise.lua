-- stdlib/nn/initialise.lua: lt.nn.init, initialization of parameters, with PyTorch's formulas.
--
-- Each function writes in place, without history, and returns the tensor. fan_in is the number of
-- inputs that an output sums over, fan_out the number of outputs that an input reaches.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local exact = require "ltrain.core.exact"

local initialise = {}

--- Uniform between `low` (0) and `high` (1).
function initialise.uniform_(tensor, low, high)
  local _ <close> = c.no_grad()
  return tensor:uniform_(low or 0.0, high or 1.0)
end

--- Normal with mean `mean` (0) and standard deviation `std` (1).
function initialise.normal_(tensor, mean, std)
  local _ <close> = c.no_grad()
  return tensor:normal_(mean or 0.0, std or 1.0)
end

--- Sets every element to `value`.
function initialise.constant_(tensor, value)
  local _ <close> = c.no_grad()
  return tensor:fill_(value)
end

--- Sets every element to 0.
function initialise.zeros_(tensor) return initialise.constant_(tensor, 0) end

--- Sets every element to 1.
function initialise.ones_(tensor) return initialise.constant_(tensor, 1) end

--- Returns fan_in and fan_out of a weight [out, in, ...].
function initialise.fans(tensor)
  if not c.is_tensor(tensor) then
    errors.blame("init: a tensor is needed, a layer's weight: got %s", errors.show(tensor))
  end
  local shape = tensor.shape
  if #shape < 2 then
    errors.blame("init: fans need a tensor of two or more dims: got [%s]",
      table.concat(shape, ", "))
  end
  local field = 1
  for i = 3, #shape do field = field * shape[i] end
  return shape[2] * field, shape[1] * field
end

-- What a nonlinearity asks for, so that variances stay the same from layer to layer.
local function gain_of(name, a)
  if name == "relu" then return math.sqrt(2) end
  if name == "leaky_relu" then return math.sqrt(2 / (1 + a * a)) end
  if name == "tanh" then return 5 / 3 end
  if name == "selu" then return 3 / 4 end
  return 1.0
end

local KAIMING <const> = {
  a = { type = "number", default = 0.0, doc = "slope of leaky_relu below 0" },
  mode = { type = "string", default = "fan_in", choices = { "fan_in", "fan_out" } },
  nonlinearity = { type = "string", default = "leaky_relu",
                   choices = { "leaky_relu", "relu", "tanh", "selu", "sigmoid", "linear" } },
}

local function kaiming_std(tensor, options, where)
  local o = config.check(options, KAIMING, where)
  local fan_in, fan_out = initialise.fans(tensor)
  local fan = o.mode == "fan_in" and fan_in or fan_out
  return gain_of(o.nonlinearity, o.a) / math.sqrt(fan)
end

--- He et al. 2015, uniform: bound = gain * sqrt(3 / fan). Options: a, mode, nonlinearity.
function initialise.kaiming_uniform_(tensor, options)
  local bound = math.sqrt(3) * kaiming_std(tensor, options, "init.kaiming_uniform_")
  return initialise.uniform_(tensor, -bound, bound)
end

--- He et al. 2015, normal: std = gain / sqrt(fan).
function initialise.kaiming_normal_(tensor, options)
  return initialise.normal_(tensor, 0, kaiming_std(tensor, options, "init.kaiming_normal_"))
end

local XAVIER <const> = { gain = { type = "number", default = 1.0 } }

local function xavier_std(tensor, options, where)
  local fan_in, fan_out = initialise.fans(tensor)
  return config.check(options, XAVIER, where).gain * math.sqrt(2 / (fan_in + fan_out))
end

--- Glorot and Bengio 2010, uniform. Options: gain.
function initialise.xavier_uniform_(tensor, options)
  local bound = math.sqrt(3) * xavier_std(tensor, options, "init.xavier_uniform_")
  return initialise.uniform_(tensor, -bound, bound)
end

--- Glorot and Bengio 2010, normal. Options: gain.
function initialise.xavier_normal_(tensor, options)
  return initialise.normal_(tensor, 0, xavier_std(tensor, options, "init.xavier_normal_"))
end

--- PyTorch's default for linear and convolution layers: both uniform between -1 / sqrt(fan_in) and
--- 1 / sqrt(fan_in).
function initialise.default_(weight, bias)
  initialise.kaiming_uniform_(weight, { a = math.sqrt(5) })
  if bias then
    local bound = 1 / math.sqrt((initialise.fans(weight)))
    initialise.uniform_(bias, -bound, bound)
  end
end

return exact.all(initialise, "init")
