-- stdlib/nn/DropoutNd.lua: zeroes random channels in training; others are scaled by 1 / (1 - p).
-- B batch, C channels.
--
-- Tompson et al.: Efficient object localization using convolutional networks, 2015.

local Dropout = require "ltrain.nn.Dropout"
local dims_family = require "ltrain.core.dims_family"
local dropouts = require "ltrain.ops.dropouts"
local errors = require "ltrain.core.errors"

return dims_family.extend(Dropout, "DropoutNd", function(DropoutNd, n)
  local shape <const> = dims_family.text("[B, C, ...]", n)

  DropoutNd.__arguments = "p"

  --- nn.DropoutNd(0.1): the probability p, 0.5 by default
  function DropoutNd:init(p) Dropout.init(self, p) end

  ---@param x Tensor [B, C, ...] -> the same
  function DropoutNd:forward(x)
    if x.ndim ~= n + 2 then
      errors.blame("nn.%s: x must be %s: got %s", self.__name, shape, errors.show(x))
    end
    if not self.training or self.p == 0 then return x end
    local y = dropouts.of_channels(x, self.p)
    return y
  end
end)
