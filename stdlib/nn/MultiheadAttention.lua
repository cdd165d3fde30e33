-- stdlib/nn/MultiheadAttention.lua: multi-head attention, with input and output projections.
-- N batch, T queries, S keys, E features, H heads.
--
-- Vaswani et al.: Attention is all you need, 2017. Parameters have PyTorch's names and shapes. A
-- bool mask is true for keys that are attended to (the opposite of PyTorch's module); a
-- floating-point mask is added to the scores.

local Linear = require "ltrain.nn.Linear"
local Module = require "ltrain.nn.Module"
local attention_weights = require "ltrain.nn.attention_weights"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local initialise = require "ltrain.nn.initialise"
local scaled_attention = require "ltrain.nn.scaled_attention"
local torch_masks = require "ltrain.nn.torch_masks"

local MultiheadAttention = Module:extend("MultiheadAttention")

MultiheadAttention.__arguments = "embed_dim num_heads | dropout bias (add_bias_kv) "
  .. "(add_zero_attn) kdim vdim"

local OPTIONS <const> = {
  dropout = { type = "number", default = 0, min = 0, max = 1, doc = "dropout of the attention "
    .. "weights, in training mode" },
  bias = { type = "boolean", default = true, doc = "whether the projections have biases" },
  kdim = { type = "integer", min = 1, doc = "features of keys; embed_dim by default" },
  vdim = { type = "integer", min = 1, doc = "features of values; embed_dim by default" },
}

-- The names of weights of different shapes, which in_proj_weight cannot hold.
local APART <const> = { "q_proj_weight", "k_proj_weight", "v_proj_weight" }

--- nn.MultiheadAttention(512, 8): features and heads
function MultiheadAttention:init(embed_dim, num_heads, options)
  local name <const> = "nn.MultiheadAttention"
  self.embed_dim = config.argument(embed_dim, "integer", name, "embed_dim", { min = 1 })
  self.num_heads = config.argument(num_heads, "integer", name, "num_heads", { min = 1 })
  if embed_dim % num_heads ~= 0 then
    errors.blame("%s: %d features do not divide into %d heads", name, embed_dim, num_heads)
  end
  local o = config.check(options, OPTIONS, name)
  self.dropout, self._head_dim = o.dropout, embed_dim // num_heads
  self.kdim, self.vdim = o.kdim or embed_dim, o.vdim or embed_dim
  if self.kdim == embed_dim and self.vdim == embed_dim then
    self.in_proj_weight = c.parameter(c.empty(3 * embed_dim, embed_dim))
    initialise.xavier_uniform_(self.in_proj_weight)
  else
    for part, width in ipairs { embed_dim, self.kdim, self.vdim } do
      self[APART[part]] = c.parameter(c.empty(embed_dim, width))
      initialise.xavier_uniform_(self[APART[part]])
    end
  end
  if o.bias then self.in_proj_bias = c.parameter(c.zeros(3 * embed_dim)) end
  self.out_proj = Linear(embed_dim, embed_dim, { bias = o.bias })
  if o.bias then initialise.zeros_(self.out_proj.bias) end
end

-- Features of this rank's heads, which are all but under lt.parallel.
local function width_of(self) return self.num_heads * self._head_dim end

-- Rows of projection `k` (1 to 3, `n` of them) of x.
local function project(self, x, k, n)
  local e, bias = width_of(self), self.in_proj_bias
  local weight = self.in_proj_weight and self.in_proj_weight:narrow(1, (k - 1) * e + 1, n * e)
    or self[APART[k]]
  local y = c.linear(x, weight, bias and bias:narrow(1, (k - 1) * e + 1, n * e))
  return y
end

-- Queries, keys and values, each [N, T, E]: of one tensor in one product.
local function projected(self, query, key, value)
  if self.in_proj_weight and rawequal(query, key) and rawequal(key, value) then
    local all, e = project(self, query, 1, 3), width_of(self)
    return all:narrow(3, 1, e), all:narrow(3, e + 1, e), all:narrow(3, 2 * e + 1, e)
  end
  return project(self, query, 1, 1), project(self, key, 2, 1), project(self, value, 3, 1)
end

-- [N, T, E] as [N, H, T, E / H].
local function heads(self, x)
  return x:reshape(x.shape[1], x.shape[2], self.num_heads, self._head_dim):transpose(2, 3)
end

-- One mask of `mask` [T, S] or [N, H, T, S] and `key_mask` [N, S]; nil where all take part.
local function joined(mask, key_mask)
  if not key_mask then return mask end
  if key_mask.ndim ~= 2 or key_mask.dtype ~= "bool" then
    errors.blame("nn.MultiheadAttention: key_mask must be bool [N, S], true where a key takes "
      .. "part: got %s", errors.show(key_mask))
  end
  key_mask = key_mask:reshape(key_mask.shape[1], 1, 1, key_mask.shape[2])
  if not mask then return key_mask end
  if mask.dtype == "bool" then return mask:logical_and(key_mask) end
  local all = mask + c.zeros(key_mask.shape, { dtype = mask.dtype, device = mask.device })
  return all:masked_fill(key_mask:logical_not(), -math.huge)
end

-- True at the keys that each of `count` queries may see, the last of `total` positions.
local function causal_mask(count, total, device)
  local all = c.ones(count, total, { dtype = "bool", device = device })
  return all:tril(total - count)
end

local CALL <const> = torch_masks {
  mask = { type = "tensor",
    doc = "[T, S] or [N, H, T, S]: bool, true for keys that are attended to, or added to the "
      .. "scores (PyTorch's attn_mask)" },
  key_mask = { type = "tensor", doc = "bool [N, S]: true for keys that are attended to (the "
    .. "opposite of PyTorch's key_padding_mask)" },
  causal = { type = "boolean", default = false, doc = "queries attend to keys up to their own "
    .. "position only" },
  need_weights = { type = "boolean", default = false, doc = "also return the attention weights" },
  cache = { type = "table", doc = "an nn.KVCache, to which keys and values are appended" },
}

--- Returns y [N, T, E]; with need_weights also the attention weights [N, T, S], averaged over the
--- heads. Key and value default to the query.
---@param query Tensor [N, T, E]
---@param key Tensor [N, S, kdim]
---@param value Tensor [N, S, vdim]
function MultiheadAttention:forward(query, key, value, options)
  if type(key) == "table" then key, options = nil, key end
  local o = config.check(options, CALL, "nn.MultiheadAttention")
  if query.ndim ~= 3 or query.shape[3] ~= self.embed_dim then
    errors.blame("nn.MultiheadAttention: query must be [N, T, %d]: got %s", self.embed_dim,
      errors.show(query))
  end
  key = key or query
  local q, k, v = projected(self, query, key, value or key)
  q, k, v = heads(self, q), heads(self, k), heads(self, v)
  local mask, causal = joined(o.mask, o.key_mask), o.causal
  if o.cache then
    k, v = o.cache:append(k, v)
    if causal and k.shape[3] > q.shape[3] then -- the queries are the last of the positions
      causal, mask = false, q.shape[3] > 1
        and joined(causal_mask(q.shape[3], k.shape[3], q.device), o.key_mask) or mask
    end
  end
  local y = scaled_attention(q, k, v, mask, { causal = causal,
    dropout_p = self.training and self.dropout or 0 }, self.head_range)
  y = self.out_proj(y:transpose(2, 3):flatten(3))
  if o.need_weights then return y, attention_weights(q, k, mask, causal):mean(2) end
  return y
end

function MultiheadAttention:extra_repr()
  return ("%d, %d"):format(self.embed_dim, self.num_heads)
end

return MultiheadAttention
