-- stdlib/nn/TransformerDecoder.lua: a stack of decoder layers.
-- N batch, T positions, S positions of the memory, E features.

local Stack = require "ltrain.nn.transformer_stack"

local TransformerDecoder = Stack:extend("TransformerDecoder")

TransformerDecoder.__arguments = "decoder_layer num_layers | norm"

--- nn.TransformerDecoder(layer, 6, {norm = nn.LayerNorm(512)}): a stack of 6 copies of a layer, all
--- with its initial values
function TransformerDecoder:init(layer, num_layers, options)
  Stack.init(self, layer, num_layers, options)
end

--- Options: those of the layers, and caches, a list with an nn.KVCache for each layer.
---@param x Tensor [N, T, E] -> the same
---@param memory Tensor [N, S, E]
function TransformerDecoder:forward(x, memory, options)
  local y = self:run(options, function(layer, before, o)
    return (layer(before or x, memory, o))
  end)
  return y
end

return TransformerDecoder
