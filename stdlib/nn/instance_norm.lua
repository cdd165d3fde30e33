-- stdlib/nn/instance_norm.lua: what instance normalization in one to three dims shares: batch
-- normalization of each element of the batch by itself.

local BatchNorm = require "ltrain.nn.batch_norm"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local InstanceNorm = BatchNorm:extend("InstanceNorm")

InstanceNorm.options = {
  eps = BatchNorm.options.eps,
  momentum = BatchNorm.options.momentum,
  affine = { type = "boolean", default = false, doc = "learn a weight and a bias" },
  track_running_stats = { type = "boolean", default = false,
    doc = "keep running averages, and use them in evaluation mode" },
}

-- x [N, C, ...]: by the running averages, or by the statistics of each element, which are tracked.
local function normalized(self, x)
  local tracked = self.running_mean ~= nil
  if tracked and not self.training then
    local y = c.instance_norm(x, self.weight, self.bias, self.running_mean, self.running_var,
      { eps = self.eps })
    return y
  end
  local y, mean, variance = c.instance_norm(x, self.weight, self.bias, { eps = self.eps })
  if tracked then
    local count = 1
    for d = 3, x.ndim do count = count * x.shape[d] end
    self:_note_statistics(mean:detach():mean(1), variance:detach():mean(1), count)
  end
  return y
end

function InstanceNorm:forward(x)
  local batched = x.ndim == self.most_dims
  if not batched and x.ndim ~= self.least_dims or x.shape[batched and 2 or 1] ~= self.num_features
  then
    errors.blame("nn.%s: x must be %s with %d channels: got %s", self.__name, self.shapes,
      self.num_features, errors.show(x))
  end
  if batched then return normalized(self, x) end
  local y = normalized(self, x:unsqueeze(1)):squeeze(1)
  return y
end

return InstanceNorm
