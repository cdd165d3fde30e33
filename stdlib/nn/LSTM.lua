-- stdlib/nn/LSTM.lua: long short-term memory, over whole sequences.
-- N sequences, T steps, I inputs, H hidden units, P outputs (H, or proj_size), L layers,
-- D directions (2 if bidirectional).

local Recurrent = require "ltrain.nn.recurrent"
local config = require "ltrain.core.config"

local LSTM = Recurrent:extend("LSTM")

LSTM.__arguments = "input_size hidden_size"
  .. " | num_layers bias batch_first dropout bidirectional proj_size"

LSTM.options = {
  proj_size = { type = "integer", default = 0, min = 0, doc = "size of the projection of h; 0: "
    .. "no projection" },
}
for key, row in pairs(Recurrent.options) do LSTM.options[key] = row end

--- nn.LSTM(128, 256, {num_layers = 2}): features of x, hidden units; y, state = lstm(x, state)
function LSTM:init(input_size, hidden_size, options)
  self:make("lstm_layer", input_size, hidden_size, config.check(options, LSTM.options, "nn.LSTM"))
end

--- Returns y [N, T, D P] and the state after the last steps. With lengths, outputs after the end of
--- a sequence are 0, and its state is that of its last step. An unbatched sequence is [T, I], its
--- state [D L, P].
---@param x Tensor [N, T, I] -> [N, T, D P]
---@param state Tensor {h, c}: h [D L, N, P], c [D L, N, H]; zeros by default
---@param options table {lengths = n}: n [N], a list or a tensor: the steps of each sequence
function LSTM:forward(x, state, options)
  local y, after = self:run(x, state, options)
  return y, after
end

return LSTM
