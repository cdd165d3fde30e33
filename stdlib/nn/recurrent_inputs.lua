-- stdlib/nn/recurrent_inputs.lua: parameters of recurrent layers and cells, and what a call of one
-- is given: inputs, states and lengths, with the letters of recurrent.lua.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local initialise = require "ltrain.nn.initialise"

local recurrent_inputs = {}

--- A parameter, uniform within 1 / sqrt(H).
function recurrent_inputs.parameter(self, ...)
  local bound = 1 / math.sqrt(self.hidden_size)
  local tensor = c.parameter(c.empty(...))
  initialise.uniform_(tensor, -bound, bound)
  return tensor
end

--- Weights and biases of x and h, whose names end so.
function recurrent_inputs.parameters(self, ending, rows, inputs, outputs, bias)
  self["weight_ih" .. ending] = recurrent_inputs.parameter(self, rows, inputs)
  self["weight_hh" .. ending] = recurrent_inputs.parameter(self, rows, outputs)
  if not bias then return end
  self["bias_ih" .. ending] = recurrent_inputs.parameter(self, rows)
  self["bias_hh" .. ending] = recurrent_inputs.parameter(self, rows)
end

--- x as a batch [N, T, I], and whether it was one sequence [T, I].
function recurrent_inputs.batch(self, x, name)
  local alone = c.is_tensor(x) and x.ndim == 2
  if not c.is_tensor(x) or not (alone or x.ndim == 3) or x.shape[x.ndim] ~= self.input_size then
    errors.blame("%s: x must be [N, T, %d]: got %s", name, self.input_size, errors.show(x))
  end
  if x.shape[x.ndim - 1] == 0 then
    errors.blame("%s: x has no steps: got %s", name, errors.show(x))
  end
  return alone and x:unsqueeze(1) or x, alone
end

-- One part of a state, as [D L, N, P].
local function part(tensor, what, shape, alone, name, steps)
  local want = alone and { shape[1], shape[3] } or shape
  local fits = c.is_tensor(tensor) and tensor.ndim == #want
  for i, size in ipairs(want) do fits = fits and tensor.shape[i] == size end
  if not fits then
    local is_swapped = c.is_tensor(tensor) and not alone and tensor.shape[2] == steps
    errors.blame("%s: %s must be [%s]: got %s%s", name, what, table.concat(want, ", "),
      errors.show(tensor), is_swapped
        and ": sequences are [N, T, I] here: layer(x:transpose(1, 2), state)" or "")
  end
  return alone and tensor:unsqueeze(2) or tensor
end

--- The initial h, and c of an LSTM, in a table that is empty where no state is given.
function recurrent_inputs.state(self, state, batch, alone, name)
  if state == nil then return {} end
  local shape = { self.num_layers * self:directions(), batch.shape[1], self:output_size() }
  if self._op ~= "lstm_layer" then
    return { h = part(state, "the state", shape, alone, name, batch.shape[2]) }
  end
  if type(state) ~= "table" or #state ~= 2 then
    errors.blame("%s: the state must be {h, c}: got %s", name, errors.show(state))
  end
  local of_cells = { shape[1], shape[2], self.hidden_size }
  return { h = part(state[1], "h of the state", shape, alone, name, batch.shape[2]),
    c = part(state[2], "c of the state", of_cells, alone, name, batch.shape[2]) }
end

--- Lengths [N] as a tensor of the batch's device; nil where none are given.
function recurrent_inputs.lengths(lengths, batch, name)
  if lengths == nil then return nil end
  local n, t = batch.shape[1], batch.shape[2]
  if not c.is_tensor(lengths) then
    for i, length in ipairs(lengths) do
      if math.type(length) ~= "integer" or length < 0 or length > t then
        errors.blame("%s: length %s of sequence %d is out of 0..%d", name, tostring(length), i - 1,
          t)
      end
    end
    lengths = c.tensor(lengths, { dtype = "i64" })
  end
  local dtype = lengths.dtype
  if lengths.ndim ~= 1 or lengths.shape[1] ~= n or not dtype:find "^[iu]%d" then
    errors.blame("%s: lengths must be %d integers, one a sequence: got %s", name, n,
      errors.show(lengths))
  end
  return lengths:to("i64"):to(batch.device)
end

return recurrent_inputs
