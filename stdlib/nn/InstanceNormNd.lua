-- stdlib/nn/InstanceNormNd.lua: instance normalization: each channel of each element is normalized
-- to mean 0 and variance 1. B batch, C channels, ... dims.
--
-- With `track_running_stats` it keeps running averages, and uses them in evaluation mode.

local BatchNorm = require "ltrain.nn.batch_norm"
local c = require "ltrain.c"
local dims_family = require "ltrain.core.dims_family"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = {
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
    local y = c.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
      { eps = self.eps })
    return y
  end
  local y, mean, variance = c.instance_norm(x, nil, nil, self.weight, self.bias, { eps = self.eps })
  if tracked then
    local count = 1
    for d = 3, x.ndim do count = count * x.shape[d] end
    self:_note_statistics(mean:detach():mean(1), variance:detach():mean(1), count)
  end
  return y
end

return dims_family.extend(BatchNorm, "InstanceNormNd", function(InstanceNormNd, n)
  local shapes <const> = dims_family.text("[B, C, ...] or [C, ...]", n)

  InstanceNormNd.__arguments = "num_features | eps momentum affine track_running_stats"
  InstanceNormNd.options = OPTIONS

  --- nn.InstanceNormNd(32) or nn.InstanceNormNd(32, {affine = true})
  function InstanceNormNd:init(num_features, options)
    BatchNorm.init(self, num_features, options)
  end

  ---@param x Tensor [B, C, ...] or [C, ...] -> the same
  function InstanceNormNd:forward(x)
    local batched = x.ndim == n + 2
    if not batched and x.ndim ~= n + 1 or x.shape[batched and 2 or 1] ~= self.num_features then
      errors.blame("nn.%s: x must be %s with %d channels: got %s", self.__name, shapes,
        self.num_features, errors.show(x))
    end
    if batched then return normalized(self, x) end
    local y = normalized(self, x:unsqueeze(1)):squeeze(1)
    return y
  end
end)
