-- spec/ports/llama.lua: Llama's block: RMSNorm, rotary positions, grouped heads, SwiGLU.
local lt = require "ltrain"
local nn = lt.nn
local NO_BIAS <const> = {bias = false}

local Attention = lt.Module:extend("Attention")

function Attention:init()
  self.q_proj, self.k_proj = nn.Linear(16, 16, NO_BIAS), nn.Linear(16, 8, NO_BIAS)
  self.v_proj, self.o_proj = nn.Linear(16, 8, NO_BIAS), nn.Linear(16, 16, NO_BIAS)
  self.rotate = nn.RotaryPositions(4)
end

function Attention:forward(x) -- [N, T, 16] -> the same
  local n, t = table.unpack(x.shape)
  local q = self.rotate(self.q_proj(x):view(n, t, 4, 4):transpose(2, 3))
  local k = self.rotate(self.k_proj(x):view(n, t, 2, 4):transpose(2, 3))
  local v = self.v_proj(x):view(n, t, 2, 4):transpose(2, 3)
  local y = lt.scaled_dot_product_attention(q, k, v, {causal = true, enable_gqa = true})
  return self.o_proj(y:transpose(2, 3):reshape(n, t, 16))
end

local MLP = lt.Module:extend("MLP")

function MLP:init()
  self.gate_proj, self.up_proj = nn.Linear(16, 32, NO_BIAS), nn.Linear(16, 32, NO_BIAS)
  self.down_proj = nn.Linear(32, 16, NO_BIAS)
end

function MLP:forward(x) return self.down_proj(self.gate_proj(x):silu() * self.up_proj(x)) end

local Llama = lt.Module:extend("Llama")

function Llama:init()
  self.embed_tokens = nn.Embedding(20, 16)
  self.input_layernorm, self.self_attn = nn.RMSNorm(16, {eps = 1e-5}), Attention()
  self.post_attention_layernorm, self.mlp = nn.RMSNorm(16, {eps = 1e-5}), MLP()
  self.norm = nn.RMSNorm(16, {eps = 1e-5})
  self.lm_head = nn.Linear(16, 20, NO_BIAS)
end

function Llama:forward(ids) -- [N, T] -> [N, T, V]
  local x = self.embed_tokens(ids)
  x = x + self.self_attn(self.input_layernorm(x))
  x = x + self.mlp(self.post_attention_layernorm(x))
  return self.lm_head(self.norm(x))
end

return function(formulas)
  local net, text = formulas.fill(Llama()), formulas.ids({4, 11}, 20)
  local optimizer = lt.optim.AdamW(net:parameters(), {lr = 5e-3})
  return formulas.steps(optimizer, function()
    local logits = net(text[{lt.all, {1, -2}}])
    return lt.cross_entropy(logits:flatten(1, 2), text[{lt.all, {2, -1}}]:flatten())
  end)
end
