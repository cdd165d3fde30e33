-- stdlib/models/lstm_lm.lua: a recurrent language model, with the names of PyTorch's example
-- word_language_model.
-- N batch, T positions, V vocabulary.

local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local nn = require "ltrain.nn"

local LSTMLM = nn.Module:extend("LSTMLM")
LSTMLM.__arguments = "|"

local OPTIONS <const> = {
  vocab_size = { type = "integer", required = true, min = 1 },
  width = { type = "integer", default = 200, min = 1, doc = "features of a token" },
  hidden = { type = "integer", default = 200, min = 1, doc = "features of the state" },
  num_layers = { type = "integer", default = 2, min = 1 },
  dropout = { type = "number", default = 0.2, min = 0, max = 1 },
  tie_weights = { type = "boolean", default = false,
    doc = "share one weight for tokens and logits; hidden must equal width" },
}

--- lt.models.lstm_lm{vocab_size = 1000}
function LSTMLM:init(options)
  local o = config.check(options, OPTIONS, "models.lstm_lm")
  if o.tie_weights and o.hidden ~= o.width then
    errors.blame("models.lstm_lm: tie_weights: hidden must be width: got %d and %d", o.hidden,
      o.width)
  end
  self:save_hyperparameters(o)
  self.drop = nn.Dropout(o.dropout)
  self.encoder = nn.Embedding(o.vocab_size, o.width)
  self.rnn = nn.LSTM(o.width, o.hidden, { num_layers = o.num_layers, dropout = o.dropout })
  self.decoder = nn.Linear(o.hidden, o.vocab_size)
  nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
  nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
  nn.init.zeros_(self.decoder.bias)
  if o.tie_weights then self.decoder.weight = self.encoder.weight end
end

--- Returns the logits and the state, which can be passed to the next call with the ids of further
--- positions. `state[1]:detach()` cuts the graph.
---@param ids Tensor [N, T] -> logits [N, T, V]
function LSTMLM:forward(ids, state)
  local y, next_state = self.rnn(self.drop(self.encoder(ids)), state)
  local logits = self.decoder(self.drop(y))
  return logits, next_state
end

--- Returns the state of the sequences of the batch in the index (from 0), for the beams of
--- lt.generate.
function LSTMLM:reorder_cache(state, index)
  return { state[1]:index_select(2, index), state[2]:index_select(2, index) }
end

return LSTMLM
