-- stdlib/nn/batch_norm.lua: the base class of BatchNorm1d, 2d and 3d and of SyncBatchNorm.
--
-- In training mode it normalizes with the mean and variance of the batch, and updates running
-- averages of them; in evaluation mode it normalizes with the running averages. The operation
-- itself changes nothing: the layer updates its buffers, without history.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local BatchNorm = Module:extend("BatchNorm")

BatchNorm.options = {
  eps = { type = "number", default = 1e-5, min = 0, doc = "added to the variance" },
  momentum = { type = "number|boolean", default = 0.1, min = 0, max = 1,
               doc = "weight of a new batch in the averages; false: cumulative average" },
  affine = { type = "boolean", default = true, doc = "learn a weight and a bias" },
  track_running_stats = { type = "boolean", default = true,
    doc = "whether to keep running averages" },
}

function BatchNorm:init(num_features, options)
  local name = "nn." .. self.__name
  self.num_features = config.argument(num_features, "integer", name, "num_features", { min = 1 })
  local o = config.check(options, self.options, name)
  self.eps, self.momentum = o.eps, o.momentum
  if o.affine then
    self.weight = c.parameter(c.ones(num_features))
    self.bias = c.parameter(c.zeros(num_features))
  end
  if o.track_running_stats then
    self:register_buffer("running_mean", c.zeros(num_features))
    self:register_buffer("running_var", c.ones(num_features))
    self:register_buffer("num_batches_tracked", c.zeros({}, { dtype = "i64" }))
  end
end

--- Updates the running averages: average += momentum * (new - average), with the unbiased variance.
--- `count`: how many elements of a channel mean and variance were computed from.
function BatchNorm:track_statistics(mean, variance, count)
  local _ <close> = c.allow_update()
  self.num_batches_tracked:add_(1)
  local share = self.momentum or 1 / self.num_batches_tracked:item()
  self.running_mean:mul_(1 - share):add_(mean * share)
  self.running_var:mul_(1 - share):add_(variance * (share * count / math.max(count - 1, 1)))
end

--- Tracks the statistics of a call in training mode, or leaves that to a loop that has an order of
--- its own for it.
function BatchNorm:_note_statistics(mean, variance, count)
  if not self.running_mean or not self.training or c.runtime.is_recomputing() then return end
  local track = self._later
  if track then track(mean, variance, count) else self:track_statistics(mean, variance, count) end
end

-- The same with mean and variance over all ranks' samples: sums are reduced, and gradients too.
local function over_ranks(self, x)
  local channels, dims = { 1, self.num_features }, { 1 }
  for d = 3, x.ndim do channels[d], dims[d - 1] = 1, d end
  local count = collectives.all_reduce(x:numel() // self.num_features)
  local mean = collectives.all_reduce(x:sum(dims)) / count
  local centered = x - mean:reshape(channels)
  local variance = collectives.all_reduce((centered * centered):sum(dims)) / count
  local y = centered * (variance + self.eps):rsqrt():reshape(channels)
  if self.weight then y = y * self.weight:reshape(channels) + self.bias:reshape(channels) end
  return y, mean:detach(), variance:detach(), count
end

function BatchNorm:forward(x)
  if x.ndim < self.least_dims or x.ndim > self.most_dims then
    errors.blame("nn.%s: x must be %s: got %s", self.__name, self.shapes, errors.show(x))
  end
  local tracked = self.running_mean ~= nil
  if tracked and not self.training then
    local y = c.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
      { eps = self.eps })
    return y
  end
  local y, mean, variance, count
  if (self._synced or self._always) and self.training then
    y, mean, variance, count = over_ranks(self, x)
  else
    y, mean, variance = c.batch_norm(x, nil, nil, self.weight, self.bias, { eps = self.eps })
    count = x:numel() // self.num_features
  end
  self:_note_statistics(mean, variance, count)
  return y
end

function BatchNorm:extra_repr()
  return ("%d, {eps = %g, momentum = %s}"):format(self.num_features, self.eps, self.momentum)
end

return BatchNorm
