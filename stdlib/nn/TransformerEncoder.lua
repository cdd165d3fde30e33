-- stdlib/nn/TransformerEncoder.lua: a stack of encoder layers.
-- N batch, T positions, E features.

local Stack = require "ltrain.nn.transformer_stack"

local TransformerEncoder = Stack:extend("TransformerEncoder")

TransformerEncoder.__arguments = "encoder_layer num_layers | norm"

--- nn.TransformerEncoder(layer, 6, {norm = nn.LayerNorm(512)}): a stack of 6 copies of a layer, all
--- with its initial values
function TransformerEncoder:init(layer, num_layers, options)
  Stack.init(self, layer, num_layers, options)
end

--- Options: those of the layers, and caches, a list with an nn.KVCache for each layer.
---@param x Tensor [N, T, E] -> the same
function TransformerEncoder:forward(x, options)
  local y = self:run(options, function(layer, before, o) return (layer(before or x, o)) end)
  return y
end

return TransformerEncoder
