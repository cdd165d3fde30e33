-- stdlib/nn/recurrent.lua: what LSTM, GRU and RNN share: layers, directions, states, lengths.
-- N sequences, T steps, I inputs, H hidden units, P outputs (H, or proj_size), L layers,
-- D directions (2 if bidirectional).
--
-- Parameters have PyTorch's names, shapes and order of gates (i f g o of an LSTM, r z n of a GRU):
-- weight_ih_l0 [G H, I], weight_hh_l0 [G H, P], bias_ih_l0, bias_hh_l0, weight_hr_l0 [P, H], then
-- _l1 and so on, with _reverse for the second direction. A layer in one direction is one operation
-- over all steps.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local recurrent_inputs = require "ltrain.nn.recurrent_inputs"

local Recurrent = Module:extend("Recurrent")

Recurrent.options = {
  num_layers = { type = "integer", default = 1, min = 1, max = 65536,
    doc = "number of stacked layers" },
  bias = { type = "boolean", default = true, doc = "whether the gates have biases" },
  batch_first = { type = "boolean", default = true, doc = "must be true: x is [N, T, I]",
    check = function(value)
      if not value then
        return "must be true: sequences are [N, T, I] here; write layer(x:transpose(1, 2)) and "
          .. "y:transpose(1, 2)"
      end
    end },
  dropout = { type = "number", default = 0, min = 0, max = 1,
    doc = "dropout between layers, in training mode" },
  bidirectional = { type = "boolean", default = false, doc = "add a second direction, from the "
    .. "last step to the first" },
}

local GATES <const> = { lstm_layer = 4, gru_layer = 3, rnn_layer = 1 }

--- Makes the parameters; `op` is the operation of a layer, `o` the options that were checked.
function Recurrent:make(op, input_size, hidden_size, o)
  local name = "nn." .. self.__name
  self.input_size = config.argument(input_size, "integer", name, "input_size", { min = 1 })
  self.hidden_size = config.argument(hidden_size, "integer", name, "hidden_size", { min = 1 })
  self.num_layers, self.bias, self.dropout = o.num_layers, o.bias, o.dropout
  self.bidirectional, self.proj_size = o.bidirectional, o.proj_size or 0
  self._op, self._options = op, { nonlinearity = o.nonlinearity }
  if self.proj_size >= hidden_size then
    errors.blame("%s: proj_size must be below hidden_size %d: got %d", name, hidden_size,
      self.proj_size)
  end
  if o.dropout > 0 and o.num_layers == 1 then
    console.warn(("%s: dropout = %g has no effect: it is applied between layers, and num_layers "
      .. "is 1"):format(name, o.dropout))
  end
  local rows, width = GATES[op] * hidden_size, self:output_size()
  for k = 0, o.num_layers - 1 do
    local inputs = k == 0 and input_size or width * self:directions()
    for _, ending in ipairs(self:endings(k)) do
      recurrent_inputs.parameters(self, ending, rows, inputs, width, o.bias)
      if self.proj_size > 0 then
        self["weight_hr" .. ending] = recurrent_inputs.parameter(self, width, hidden_size)
      end
    end
  end
end

function Recurrent:directions() return self.bidirectional and 2 or 1 end

-- Outputs of a direction: P.
function Recurrent:output_size()
  return self.proj_size > 0 and self.proj_size or self.hidden_size
end

-- How the names of layer `k`, from 0, end, by direction.
function Recurrent:endings(k)
  local ending = ("_l%d"):format(k)
  return self.bidirectional and { ending, ending .. "_reverse" } or { ending }
end

-- One layer in one direction, `i` of all: y [T, N, P] and the last h and c.
local function direction(self, x, ending, i, call)
  local h, cell = call.h, call.c
  return c[self._op](x, self["weight_ih" .. ending], self["weight_hh" .. ending], {
    bias_ih = self["bias_ih" .. ending], bias_hh = self["bias_hh" .. ending],
    weight_hr = self["weight_hr" .. ending], h0 = h and h:select(1, i),
    c0 = cell and cell:select(1, i), lengths = call.lengths,
    reverse = ending:find("_reverse", 1, true) ~= nil, nonlinearity = self._options.nonlinearity,
  })
end

-- All layers on x [T, N, I]: y, and the states of all, in lists.
local function layers(self, x, call)
  local hs, cells = {}, {}
  for k = 0, self.num_layers - 1 do
    local ys = {}
    for d, ending in ipairs(self:endings(k)) do
      local i = #hs + 1
      ys[d], hs[i], cells[i] = direction(self, x, ending, i, call)
    end
    x = #ys > 1 and c.cat(ys, 3) or ys[1]
    if self.training and self.dropout > 0 and k < self.num_layers - 1 then
      x = c.dropout(x, self.dropout)
    end
  end
  return x, hs, cells
end

local CALL <const> = {
  lengths = { type = "tensor|table", doc = "[N]: the number of steps of each sequence; by "
    .. "default all" },
}

Recurrent.call_options = CALL

-- y [N, T, D P] and the state after the last steps; a call of LSTM, GRU or RNN.
function Recurrent:run(x, state, options)
  local name = "nn." .. self.__name
  if options == nil and type(state) == "table" and state[1] == nil and next(state) ~= nil then
    state, options = nil, state
  end
  local o = config.check(options, CALL, name)
  local batch, alone = recurrent_inputs.batch(self, x, name)
  local call = recurrent_inputs.state(self, state, batch, alone, name)
  call.lengths = recurrent_inputs.lengths(o.lengths, batch, name)
  local y, hs, cells = layers(self, batch:transpose(1, 2), call)
  local h, cell = c.stack(hs, 1), self._op == "lstm_layer" and c.stack(cells, 1) or nil
  y = y:transpose(1, 2)
  if alone then y, h, cell = y:squeeze(1), h:squeeze(2), cell and cell:squeeze(2) end
  if cell then return y, { h, cell } end
  return y, h
end

function Recurrent:extra_repr()
  local parts = {}
  if self.num_layers > 1 then parts[#parts + 1] = ("num_layers = %d"):format(self.num_layers) end
  if not self.bias then parts[#parts + 1] = "bias = false" end
  if self.dropout > 0 then parts[#parts + 1] = ("dropout = %g"):format(self.dropout) end
  if self.bidirectional then parts[#parts + 1] = "bidirectional = true" end
  if self.proj_size > 0 then parts[#parts + 1] = ("proj_size = %d"):format(self.proj_size) end
  local sizes = ("%d, %d"):format(self.input_size, self.hidden_size)
  return #parts == 0 and sizes or ("%s, {%s}"):format(sizes, table.concat(parts, ", "))
end

return Recurrent
