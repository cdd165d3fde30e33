-- stdlib/nn/GRU.lua: gated recurrent units, over whole sequences.
-- N sequences, T steps, I inputs, P hidden units, L layers, D directions (2 if bidirectional).

local Recurrent = require "ltrain.nn.recurrent"
local config = require "ltrain.core.config"

local GRU = Recurrent:extend("GRU")

GRU.__arguments = "input_size hidden_size | num_layers bias batch_first dropout bidirectional"

--- nn.GRU(128, 256, {num_layers = 2}): features of x, hidden units; y, h = gru(x, h)
function GRU:init(input_size, hidden_size, options)
  self:make("gru_layer", input_size, hidden_size, config.check(options, GRU.options, "nn.GRU"))
end

--- Returns y [N, T, D P] and the state after the last steps. With lengths, outputs after the end of
--- a sequence are 0, and its state is that of its last step. An unbatched sequence is [T, I], its
--- state [D L, P].
---@param x Tensor [N, T, I] -> [N, T, D P]
---@param state Tensor [D L, N, P]; zeros by default
---@param options table {lengths = n}: n [N], a list or a tensor: the steps of each sequence
function GRU:forward(x, state, options)
  local y, after = self:run(x, state, options)
  return y, after
end

return GRU
