-- stdlib/nn/initialise.lua: lt.nn.init, initialization of parameters, with PyTorch's formulas.
--
-- Each function writes in place, without history, and returns the tensor. fan_in is the number of
-- inputs that an output sums over, fan_out the number of outputs that an input reaches.

local c = require "ltrain.c"
local call_form = require "ltrain.core.call_form"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"

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

local NONLINEARITIES <const> = { type = "string", default = "leaky_relu",
  choices = { "leaky_relu", "relu", "tanh", "selu", "sigmoid", "linear" } }

--- Returns the recommended gain of a nonlinearity, which preserves variances from layer to layer:
--- "linear", "sigmoid", "tanh", "relu", "leaky_relu" (`param`: its slope, 0.01), "selu".
function initialise.calculate_gain(nonlinearity, param)
  local name = config.value(nonlinearity, NONLINEARITIES, "init.calculate_gain", "nonlinearity")
  if name == "relu" then return math.sqrt(2) end
  if name == "leaky_relu" then return math.sqrt(2 / (1 + (param or 0.01) ^ 2)) end
  if name == "tanh" then return 5 / 3 end
  if name == "selu" then return 3 / 4 end
  return 1.0
end

local KAIMING <const> = {
  a = { type = "number", default = 0.0, doc = "slope of leaky_relu below 0" },
  mode = { type = "string", default = "fan_in", choices = { "fan_in", "fan_out" } },
  nonlinearity = NONLINEARITIES,
}

local function kaiming_std(tensor, options, where)
  local o = config.check(options, KAIMING, where)
  local fan_in, fan_out = initialise.fans(tensor)
  local fan = o.mode == "fan_in" and fan_in or fan_out
  return initialise.calculate_gain(o.nonlinearity, o.a) / math.sqrt(fan)
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

local TRUNCATED <const> = {
  mean = { type = "number", default = 0.0 }, std = { type = "number", default = 1.0, above = 0 },
  a = { type = "number", default = -2.0, doc = "the least value" },
  b = { type = "number", default = 2.0, doc = "the largest value" },
}

--- Normal with mean 0 and standard deviation 1, truncated to -2..2.
--- Options: mean, std, a and b, the limits (values, not multiples of std).
function initialise.trunc_normal_(tensor, options)
  local _ <close> = c.no_grad()
  local o = config.check(options, TRUNCATED, "init.trunc_normal_")
  if o.a >= o.b then
    errors.blame("init.trunc_normal_: a must be below b: got %g and %g", o.a, o.b)
  end
  local root = o.std * math.sqrt(2)
  local ends = c.tensor({ (o.a - o.mean) / root, (o.b - o.mean) / root },
    { dtype = "f64", device = "cpu" }):erf()
  tensor:uniform_(ends[1]:item(), ends[2]:item()):erfinv_()
  return tensor:mul_(root):add_(o.mean):clamp_(o.a, o.b)
end

-- Columns [rows, n <= rows] of length 1, each at right angles to the others: Gram and Schmidt's
-- way, twice, because once leaves errors.
local function orthonormal(columns)
  local done
  for k = 1, columns.shape[2] do
    local v = columns:narrow(2, k, 1)
    for _ = 1, done and 2 or 0 do v = v - done:matmul(done:t():matmul(v)) end
    v = v / (v * v):sum():sqrt()
    done = done and c.cat({ done, v }, { dim = 2 }) or v
  end
  return done
end

--- A random matrix with orthogonal rows or columns (Saxe et al. 2013), times `gain`: of a weight
--- [out, in, ...] as [out, N]. Options: gain.
function initialise.orthogonal_(tensor, options)
  local _ <close> = c.no_grad()
  local gain = config.check(options, XAVIER, "init.orthogonal_").gain
  if not c.is_tensor(tensor) or tensor.ndim < 2 then
    errors.blame("init.orthogonal_: needs a tensor of two or more dims: got %s",
      errors.show(tensor))
  end
  local rows = tensor.shape[1]
  local columns = tensor:numel() // rows
  local drawn = c.randn(math.max(rows, columns), math.min(rows, columns),
    { dtype = "f64", device = tensor.device })
  local q = orthonormal(drawn)
  if rows < columns then q = q:t() end
  return tensor:copy_((q * gain):reshape(tensor.shape))
end

--- The identity: ones on the diagonal of a matrix.
function initialise.eye_(tensor)
  local _ <close> = c.no_grad()
  if not c.is_tensor(tensor) or tensor.ndim ~= 2 then
    errors.blame("init.eye_: needs a matrix: got %s", errors.show(tensor))
  end
  tensor:fill_(0)
  for k = 1, math.min(tensor.shape[1], tensor.shape[2]) do tensor[k]:narrow(1, k, 1):fill_(1) end
  return tensor
end

local DIRAC <const> = { groups = { type = "integer", default = 1, min = 1 } }

--- The identity convolution: channel k of the output (in each of `groups`) is channel k of the
--- input. For weights [out, in, ...] with one to three spatial dims. Options: groups.
function initialise.dirac_(tensor, options)
  local _ <close> = c.no_grad()
  local groups = config.check(options, DIRAC, "init.dirac_").groups
  local n = c.is_tensor(tensor) and tensor.ndim or 0
  if n < 3 or n > 5 or tensor.shape[1] % groups ~= 0 then
    errors.blame("init.dirac_: needs a weight [out, in, ...] of 3 to 5 dims, out a multiple of %d: "
      .. "got %s", groups, errors.show(tensor))
  end
  tensor:fill_(0)
  local each = tensor.shape[1] // groups
  for group = 0, groups - 1 do
    for k = 1, math.min(each, tensor.shape[2]) do
      local place = tensor[group * each + k][k]
      while place.ndim > 1 do place = place[place.shape[1] // 2 + 1] end
      place:narrow(1, place.shape[1] // 2 + 1, 1):fill_(1)
    end
  end
  return tensor
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

strict_arity.all(initialise, "init")

-- Options that may be given by place, in PyTorch's order.
local PLACES <const> = {
  kaiming_uniform_ = "a mode nonlinearity", kaiming_normal_ = "a mode nonlinearity",
  xavier_uniform_ = "gain", xavier_normal_ = "gain", orthogonal_ = "gain",
  trunc_normal_ = "mean std a b", dirac_ = "groups",
}
for name, options in next, PLACES do
  initialise[name] = call_form.method(initialise[name], "init." .. name, 1, options)
end

return initialise
