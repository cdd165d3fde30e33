-- stdlib/nn/transformer_layer.lua: the base class of TransformerEncoderLayer and
-- TransformerDecoderLayer.

local Dropout = require "ltrain.nn.Dropout"
local LayerNorm = require "ltrain.nn.LayerNorm"
local Linear = require "ltrain.nn.Linear"
local Module = require "ltrain.nn.Module"
local MultiheadAttention = require "ltrain.nn.MultiheadAttention"
local config = require "ltrain.core.config"

local Layer = Module:extend("TransformerLayer")

local ACTIVATIONS <const> = {
  relu = function(x) return x:relu() end, gelu = function(x) return x:gelu() end,
}

Layer.options = {
  dim_feedforward = { type = "integer", default = 2048, min = 1, doc = "width between the two "
    .. "linear layers" },
  dropout = { type = "number", default = 0.1, min = 0, max = 1 },
  activation = { type = "string|function|object", default = "relu",
    doc = "'relu', 'gelu', a function of a tensor or a layer",
    check = function(value)
      if type(value) == "string" and not ACTIVATIONS[value] then
        return ("must be 'relu', 'gelu' or a function: got '%s'"):format(value)
      end
    end },
  layer_norm_eps = { type = "number", default = 1e-5, min = 0 },
  norm_first = { type = "boolean", default = false,
    doc = "normalize before attention and feedforward instead of after them" },
  bias = { type = "boolean", default = true },
}

-- Makes the parts that both have; `attentions` names those of attention.
function Layer:make(d_model, nhead, options, attentions)
  local name = "nn." .. self.__name
  self.d_model = config.argument(d_model, "integer", name, "d_model", { min = 1 })
  config.argument(nhead, "integer", name, "nhead", { min = 1 })
  local o = config.check(options, Layer.options, name)
  for _, key in ipairs(attentions) do
    self[key] = MultiheadAttention(d_model, nhead, { dropout = o.dropout, bias = o.bias })
  end
  self.linear1 = Linear(d_model, o.dim_feedforward, { bias = o.bias })
  self.dropout = Dropout(o.dropout)
  self.linear2 = Linear(o.dim_feedforward, d_model, { bias = o.bias })
  for i = 1, #attentions + 1 do
    self["norm" .. i] = LayerNorm(d_model, { eps = o.layer_norm_eps, bias = o.bias })
    self["dropout" .. i] = Dropout(o.dropout)
  end
  self.norm_first, self._activation = o.norm_first, ACTIVATIONS[o.activation] or o.activation
end

-- Part `i` with its residual connection: x + part(norm(x)), or norm(x + part(x)).
function Layer:residual(x, i, part)
  local norm, dropout = self["norm" .. i], self["dropout" .. i]
  if self.norm_first then return x + dropout(part(norm(x))) end
  return norm(x + dropout(part(x)))
end

function Layer:feedforward(x)
  local y = self.linear2(self.dropout(self._activation(self.linear1(x))))
  return y
end

return Layer
