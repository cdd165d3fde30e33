-- stdlib/nn/RNNCell.lua: one step of nn.RNN.
-- N sequences, I inputs, H hidden units.

local Cell = require "ltrain.nn.recurrent_cell"
local config = require "ltrain.core.config"

local RNNCell = Cell:extend("RNNCell")

RNNCell.__arguments = "input_size hidden_size | bias nonlinearity"

RNNCell.options = {
  bias = Cell.options.bias,
  nonlinearity = { type = "string", default = "tanh", choices = { "tanh", "relu" } },
}

--- nn.RNNCell(128, 256): features of x, hidden units; h = cell(x, h)
function RNNCell:init(input_size, hidden_size, options)
  self:make("rnn_layer", input_size, hidden_size,
    config.check(options, RNNCell.options, "nn.RNNCell"))
end

--- Returns the next h. An unbatched sequence is [I], its state [H].
---@param x Tensor [N, I] -> [N, H]
---@param state Tensor [N, H]; zeros by default
function RNNCell:forward(x, state)
  local h = self:step(x, state)
  return h
end

return RNNCell
