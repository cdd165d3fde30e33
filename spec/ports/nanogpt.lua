-- spec/ports/nanogpt.lua: nanoGPT: tied weights, decay for matrices alone, warm-up and cosine.
local lt = require "ltrain"
local nn = lt.nn

local Attention = lt.Module:extend("Attention")

function Attention:init()
  self.c_attn = nn.Linear(16, 48)
  self.c_proj = nn.Linear(16, 16)
end

function Attention:forward(x) -- [N, T, 16] -> the same
  local n, t, c = table.unpack(x.shape)
  local heads = self.c_attn(x):view(n, t, 3, 2, 8):permute(3, 1, 4, 2, 5)
  local y = lt.scaled_dot_product_attention(heads[1], heads[2], heads[3], {causal = true})
  return self.c_proj(y:transpose(2, 3):reshape(n, t, c))
end

local Block = lt.Module:extend("Block")

function Block:init()
  self.ln_1, self.ln_2 = nn.LayerNorm(16), nn.LayerNorm(16)
  self.attn = Attention()
  self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))
end

function Block:forward(x)
  x = x + self.attn(self.ln_1(x))
  return x + self.mlp(self.ln_2(x))
end

local GPT = lt.Module:extend("GPT")

function GPT:init()
  self.wte = nn.Embedding(20, 16)
  self.wpe = nn.Embedding(10, 16)
  self.h = nn.ModuleList(Block(), Block())
  self.ln_f = nn.LayerNorm(16)
  self.lm_head = nn.Linear(16, 20, {bias = false})
  self.lm_head.weight = self.wte.weight
end

function GPT:forward(ids) -- [N, T] -> [N, T, V]
  local x = self.wte(ids) + self.wpe(lt.arange(ids:size(2)))
  for _, block in ipairs(self.h) do x = block(x) end
  return self.lm_head(self.ln_f(x))
end

function GPT:training_step(text)
  local logits = self(text[{lt.all, {1, -2}}])
  return lt.cross_entropy(logits:flatten(1, 2), text[{lt.all, {2, -1}}]:flatten())
end

function GPT:configure_optimizers()
  local matrices, others = {}, {}
  for _, p in ipairs(self:parameters()) do table.insert(p.ndim > 1 and matrices or others, p) end
  local optimizer = lt.optim.AdamW({{params = matrices, weight_decay = 0.1},
    {params = others, weight_decay = 0}}, {lr = 1e-2, betas = {0.9, 0.95}})
  local scheduler = lt.optim.LambdaLR(optimizer, function(step)
    if step < 5 then return (step + 1) / 5 end
    return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - 5) / 15))
  end)
  return {optimizer = optimizer, lr_scheduler = {scheduler = scheduler, interval = "step"}}
end

return function(formulas)
  return formulas.fit(formulas.fill(GPT()), {formulas.ids({4, 11}, 20)}, {gradient_clip_val = 1})
end
