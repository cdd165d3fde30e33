-- stdlib/nn/channel_dropout.lua: dropout of whole channels.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

--- x [B, C, ...] of `ndim` dims with the same elements dropped in each place of a channel.
return function(layer, x, ndim, shapes)
  if x.ndim ~= ndim then
    errors.blame("nn.%s: x must be %s: got %s", layer.__name, shapes, errors.show(x))
  end
  if not layer.training or layer.p == 0 then return x end
  local channels = { x.shape[1], x.shape[2] }
  for d = 3, ndim do channels[d] = 1 end
  local kept = c.dropout(c.ones(channels, { dtype = x.dtype, device = x.device }), layer.p)
  local y = x * kept
  return y
end
