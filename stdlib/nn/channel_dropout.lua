-- stdlib/nn/channel_dropout.lua: dropout of whole channels.

local dropouts = require "ltrain.ops.dropouts"
local errors = require "ltrain.core.errors"

--- x [B, C, ...] of `ndim` dims with the same elements dropped in each place of a channel.
return function(layer, x, ndim, shapes)
  if x.ndim ~= ndim then
    errors.blame("nn.%s: x must be %s: got %s", layer.__name, shapes, errors.show(x))
  end
  if not layer.training or layer.p == 0 then return x end
  local y = dropouts.of_channels(x, layer.p)
  return y
end
