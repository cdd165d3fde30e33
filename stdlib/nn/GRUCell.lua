-- stdlib/nn/GRUCell.lua: one step of nn.GRU.
-- N sequences, I inputs, H hidden units.

local Cell = require "ltrain.nn.recurrent_cell"
local config = require "ltrain.core.config"

local GRUCell = Cell:extend("GRUCell")

GRUCell.__arguments = "input_size hidden_size | bias"

--- nn.GRUCell(128, 256): features of x, hidden units; h = cell(x, h)
function GRUCell:init(input_size, hidden_size, options)
  self:make("gru_layer", input_size, hidden_size,
    config.check(options, GRUCell.options, "nn.GRUCell"))
end

--- Returns the next h. An unbatched sequence is [I], its state [H].
---@param x Tensor [N, I] -> [N, H]
---@param state Tensor [N, H]; zeros by default
function GRUCell:forward(x, state)
  local h = self:step(x, state)
  return h
end

return GRUCell
