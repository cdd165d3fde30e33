-- stdlib/nn/LSTMCell.lua: one step of nn.LSTM.
-- N sequences, I inputs, H hidden units.

local Cell = require "ltrain.nn.recurrent_cell"
local config = require "ltrain.core.config"

local LSTMCell = Cell:extend("LSTMCell")

LSTMCell.__arguments = "input_size hidden_size | bias"

--- nn.LSTMCell(128, 256): features of x, hidden units; h, c = cell(x, {h, c})
function LSTMCell:init(input_size, hidden_size, options)
  self:make("lstm_layer", input_size, hidden_size,
    config.check(options, LSTMCell.options, "nn.LSTMCell"))
end

--- Returns the next h and c. An unbatched sequence is [I], its state [H].
---@param x Tensor [N, I] -> [N, H]
---@param state Tensor {h, c}, each [N, H]; zeros by default
function LSTMCell:forward(x, state)
  local h, c = self:step(x, state)
  return h, c
end

return LSTMCell
