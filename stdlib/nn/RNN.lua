-- stdlib/nn/RNN.lua: an Elman network, over whole sequences.
-- N sequences, T steps, I inputs, P hidden units, L layers, D directions (2 if bidirectional).

local Recurrent = require "ltrain.nn.recurrent"
local config = require "ltrain.core.config"

local RNN = Recurrent:extend("RNN")

RNN.__arguments = "input_size hidden_size | num_layers bias batch_first dropout bidirectional"

RNN.options = {
  nonlinearity = { type = "string", default = "tanh", choices = { "tanh", "relu" } },
}
for key, row in pairs(Recurrent.options) do RNN.options[key] = row end

--- nn.RNN(128, 256, {nonlinearity = "relu"}): features of x, hidden units; y, h = rnn(x, h)
function RNN:init(input_size, hidden_size, options)
  self:make("rnn_layer", input_size, hidden_size, config.check(options, RNN.options, "nn.RNN"))
end

--- Returns y [N, T, D P] and the state after the last steps. With lengths, outputs after the end of
--- a sequence are 0, and its state is that of its last step. An unbatched sequence is [T, I], its
--- state [D L, P].
---@param x Tensor [N, T, I] -> [N, T, D P]
---@param state Tensor [D L, N, P]; zeros by default
---@param options table {lengths = n}: n [N], a list or a tensor: the steps of each sequence
function RNN:forward(x, state, options)
  local y, after = self:run(x, state, options)
  return y, after
end

return RNN
