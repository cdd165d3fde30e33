-- stdlib/nn/recurrent_cell.lua: what LSTMCell, GRUCell and RNNCell share: one step.
-- N sequences, I inputs, H hidden units. Parameters have PyTorch's names and shapes.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local recurrent_inputs = require "ltrain.nn.recurrent_inputs"

local Cell = Module:extend("RecurrentCell")

Cell.options = {
  bias = { type = "boolean", default = true, doc = "whether the gates have biases" },
}

local GATES <const> = { lstm_layer = 4, gru_layer = 3, rnn_layer = 1 }

--- Makes the parameters; `op` is the operation of a layer, `o` the options that were checked.
function Cell:make(op, input_size, hidden_size, o)
  local name = "nn." .. self.__name
  self.input_size = config.argument(input_size, "integer", name, "input_size", { min = 1 })
  self.hidden_size = config.argument(hidden_size, "integer", name, "hidden_size", { min = 1 })
  self.bias, self._op, self._nonlinearity = o.bias, op, o.nonlinearity
  recurrent_inputs.parameters(self, "", GATES[op] * hidden_size, input_size, hidden_size, o.bias)
end

-- A part of the state, as [N, H].
local function part(self, tensor, what, x, name)
  local want = x.ndim == 1 and { self.hidden_size } or { x.shape[1], self.hidden_size }
  local fits = c.is_tensor(tensor) and tensor.ndim == #want
  for i, size in ipairs(want) do fits = fits and tensor.shape[i] == size end
  if not fits then
    errors.blame("%s: %s must be [%s]: got %s", name, what, table.concat(want, ", "),
      errors.show(tensor))
  end
  return x.ndim == 1 and tensor:unsqueeze(1) or tensor
end

local function parts(self, state, x, name)
  if state == nil then return nil end
  if self._op ~= "lstm_layer" then return part(self, state, "the state", x, name) end
  if type(state) ~= "table" or #state ~= 2 then
    errors.blame("%s: the state must be {h, c}: got %s", name, errors.show(state))
  end
  return part(self, state[1], "h of the state", x, name),
    part(self, state[2], "c of the state", x, name)
end

-- The next h [N, H], and c of an LSTMCell; a call of LSTMCell, GRUCell or RNNCell.
function Cell:step(x, state)
  local name = "nn." .. self.__name
  if not c.is_tensor(x) or x.ndim < 1 or x.ndim > 2 or x.shape[x.ndim] ~= self.input_size then
    errors.blame("%s: x must be [N, %d]: got %s", name, self.input_size, errors.show(x))
  end
  local h0, c0 = parts(self, state, x, name)
  local rows = x.ndim == 1 and x:unsqueeze(1) or x
  local _, h, cell = c[self._op](rows:unsqueeze(1), self.weight_ih, self.weight_hh, {
    bias_ih = self.bias_ih, bias_hh = self.bias_hh, h0 = h0, c0 = c0,
    nonlinearity = self._nonlinearity })
  local lstm = self._op == "lstm_layer"
  if x.ndim == 1 then h, cell = h:squeeze(1), lstm and cell:squeeze(1) or nil end
  if lstm then return h, cell end
  return h
end

function Cell:extra_repr()
  return ("%d, %d%s"):format(self.input_size, self.hidden_size,
    self.bias and "" or ", {bias = false}")
end

return Cell
