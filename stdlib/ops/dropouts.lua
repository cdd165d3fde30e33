-- stdlib/ops/dropouts.lua: dropouts and random activations: lt.dropout1d, lt.alpha_dropout,
-- lt.gumbel_softmax, lt.rrelu, ... As lt.dropout they draw unless `training` is false; layers
-- follow the mode of their module. N batch, C channels.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local dropouts = {}

-- What SELU tends to far below 0: Klambauer et al., Self-normalizing neural networks, 2017.
local ALPHA <const> = 1.7580993408473766

local P <const> = config.signature {
  { "p", type = "number", default = 0.5, min = 0, max = 1, doc = "the probability" },
  { "training", type = "boolean", default = true, doc = "false: x as it is" },
}
local GUMBEL <const> = config.signature {
  { "tau", type = "number", default = 1, above = 0, doc = "the temperature" },
  { "hard", type = "boolean", default = false,
    doc = "return one-hot vectors, with the gradient of the soft ones (straight-through)" },
  { "eps", type = "number", doc = "no effect, as in PyTorch" },
  { "dim", type = "integer", default = -1 },
}
local RRELU <const> = config.signature {
  { "lower", type = "number", default = 1 / 8, doc = "smallest slope" },
  { "upper", type = "number", default = 1 / 3, doc = "largest slope" },
  { "training", type = "boolean", default = false, doc = "false: the slope is the mean of both" },
}

-- The shape of x with one place for each channel.
local function channels_of(x, ndim, who)
  if ndim and x.ndim ~= ndim or x.ndim < 2 then
    errors.blame("%s: x must be [N, C, ...] of %s dims: got %s", who, ndim or "2 or more",
      errors.show_shape(x))
  end
  local shape = { x.shape[1], x.shape[2] }
  for d = 3, x.ndim do shape[d] = 1 end
  return shape
end

--- x [N, C, ...] with whole channels zeroed with the probability p, and others scaled.
function dropouts.of_channels(x, p)
  local ones <const> = c.ones(channels_of(x, x.ndim, "dropout"), { dtype = x.dtype,
    device = x.device })
  return x * c.dropout(ones, p)
end

local function channel_dropout(who, ndim, x, p, training)
  arguments.tensor(x, who, "x")
  local o <const> = config.arguments(who, P, p, training)
  channels_of(x, ndim, who)
  if not o.training then return x end
  return dropouts.of_channels(x, o.p)
end

--- Zeroes random channels with the probability p, and scales the others by 1 / (1 - p).
---@param x Tensor [N, C, L] -> the same
function dropouts.dropout1d(x, p, training)
  return (channel_dropout("dropout1d", 3, x, p, training))
end

--- The same for images.
---@param x Tensor [N, C, H, W] -> the same
function dropouts.dropout2d(x, p, training)
  return (channel_dropout("dropout2d", 4, x, p, training))
end

--- The same for volumes.
---@param x Tensor [N, C, D, H, W] -> the same
function dropouts.dropout3d(x, p, training)
  return (channel_dropout("dropout3d", 5, x, p, training))
end

-- What is dropped gets SELU's least value; then all is brought to mean 0 and variance 1 again.
local function alpha(x, p, shape)
  if p == 0 then return x end
  if p == 1 then return x * 0 end
  local kept <const> = c.full(shape, 1 - p, { dtype = x.dtype, device = x.device }):bernoulli()
  local a <const> = 1 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
  return x * (kept * a) + ((kept - 1) * (ALPHA * a) + ALPHA * a * p)
end

--- Dropout that preserves the mean 0 and variance 1 of SELU's outputs.
---@param x Tensor of any shape -> the same
function dropouts.alpha_dropout(x, p, training)
  arguments.tensor(x, "alpha_dropout", "x")
  local o <const> = config.arguments("alpha_dropout", P, p, training)
  return o.training and alpha(x, o.p, x.shape) or x
end

--- The same for entire channels.
---@param x Tensor [N, C, ...] -> the same
function dropouts.feature_alpha_dropout(x, p, training)
  arguments.tensor(x, "feature_alpha_dropout", "x")
  local o <const> = config.arguments("feature_alpha_dropout", P, p, training)
  local shape <const> = channels_of(x, nil, "feature_alpha_dropout")
  return o.training and alpha(x, o.p, shape) or x
end

--- Samples of the Gumbel-softmax distribution: softmax((x + Gumbel noise) / tau).
--- Jang et al.: Categorical reparameterization with Gumbel-softmax, 2017.
---@param x Tensor [..., C] unnormalised logarithms of probabilities -> the same
function dropouts.gumbel_softmax(x, tau, hard, eps, dim)
  arguments.tensor(x, "gumbel_softmax", "x")
  local o <const> = config.arguments("gumbel_softmax", GUMBEL, tau, hard, eps, dim)
  local along <const> = arguments.dim(o.dim, x.ndim, "gumbel_softmax")
  local exponential <const> = -(-c.rand(x.shape, { device = x.device })):log1p()
  local noise <const> = -exponential:clamp { min = 2 ^ -126 }:log()
  local soft <const> = ((x + noise:to(x.dtype)) / o.tau):softmax(along)
  if not o.hard then return soft end
  local one_hot <const> = c.zeros_like(soft):scatter(along, soft:argmax(along, true), 1)
  return one_hot - soft:detach() + soft
end

--- x; times a slope where it is negative: random for each element in training mode.
function dropouts.rrelu(x, lower, upper, training)
  arguments.tensor(x, "rrelu", "x")
  local o <const> = config.arguments("rrelu", RRELU, lower, upper, training)
  if o.lower > o.upper then
    errors.blame("rrelu: lower %g is above upper %g", o.lower, o.upper)
  end
  if not o.training then return x:leaky_relu((o.lower + o.upper) / 2) end
  local slope <const> = c.rand(x.shape, { dtype = x.dtype, device = x.device })
  return c.where(x:gt(0), x, x * (slope * (o.upper - o.lower) + o.lower))
end

return dropouts
