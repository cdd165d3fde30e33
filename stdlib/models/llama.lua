-- stdlib/models/llama.lua: Llama, with the names of Hugging Face's LlamaForCausalLM.
-- N batch, T positions, E features, V vocabulary.
--
-- Touvron et al.: LLaMA, 2023. The defaults are those of the model with 7 billion parameters;
-- grouped-query attention is supported, as in later models.

local cached_attention = require "ltrain.models.cached_attention"
local config = require "ltrain.core.config"
local nn = require "ltrain.nn"
local parallel = require "ltrain.parallel"
local plan_options = require "ltrain.models.plan_options"

local Attention = nn.Module:extend("Attention")

function Attention:init(o)
  local width, size = o.hidden_size, o.hidden_size // o.num_attention_heads
  self.heads, self.shared = o.num_attention_heads, o.num_key_value_heads
  self.q_proj = nn.Linear(width, self.heads * size, { bias = false })
  self.k_proj = nn.Linear(width, self.shared * size, { bias = false })
  self.v_proj = nn.Linear(width, self.shared * size, { bias = false })
  self.o_proj = nn.Linear(self.heads * size, width, { bias = false })
  self.rotary = nn.RotaryPositions(size, { max_length = o.max_position_embeddings,
    base = o.rope_theta })
end

function Attention:forward(x, cache)
  local n, t = table.unpack(x.shape)
  local function split(y, heads) return y:view(n, t, heads, -1):transpose(2, 3) end
  local seen = cache and cache.length or 0
  local q = self.rotary(split(self.q_proj(x), self.heads), seen)
  local k = self.rotary(split(self.k_proj(x), self.shared), seen)
  local y = cached_attention(q, k, split(self.v_proj(x), self.shared), cache)
  y = self.o_proj(y)
  return y
end

local MLP = nn.Module:extend("MLP")

function MLP:init(o)
  self.gate_proj = nn.Linear(o.hidden_size, o.intermediate_size, { bias = false })
  self.up_proj = nn.Linear(o.hidden_size, o.intermediate_size, { bias = false })
  self.down_proj = nn.Linear(o.intermediate_size, o.hidden_size, { bias = false })
end

function MLP:forward(x)
  local y = self.down_proj(self.gate_proj(x):silu() * self.up_proj(x))
  return y
end

local Layer = nn.Module:extend("Layer")

function Layer:init(o)
  self.input_layernorm = nn.RMSNorm(o.hidden_size, { eps = o.rms_norm_eps })
  self.self_attn = Attention(o)
  self.post_attention_layernorm = nn.RMSNorm(o.hidden_size, { eps = o.rms_norm_eps })
  self.mlp = MLP(o)
end

function Layer:forward(x, cache)
  x = x + self.self_attn(self.input_layernorm(x), cache)
  x = x + self.mlp(self.post_attention_layernorm(x))
  return x
end

local Llama = nn.Module:extend("Llama")
Llama.__arguments = "|"

local OPTIONS <const> = {
  vocab_size = { type = "integer", default = 32000, min = 1 },
  hidden_size = { type = "integer", default = 4096, min = 1, doc = "features of a position" },
  intermediate_size = { type = "integer", default = 11008, min = 1 },
  num_hidden_layers = { type = "integer", default = 32, min = 1 },
  num_attention_heads = { type = "integer", default = 32, min = 1 },
  num_key_value_heads = { type = "integer", min = 1, doc = "by default num_attention_heads" },
  max_position_embeddings = { type = "integer", default = 2048, min = 1,
    doc = "the longest sequence" },
  rms_norm_eps = { type = "number", default = 1e-6, min = 0 },
  rope_theta = { type = "number", default = 10000, above = 0 },
  tie_word_embeddings = { type = "boolean", default = false },
}

--- lt.models.llama{vocab_size = 65, hidden_size = 128, intermediate_size = 344,
--- num_hidden_layers = 4, num_attention_heads = 4}
function Llama:init(options)
  local o = config.check(options, OPTIONS, "models.llama")
  o.num_key_value_heads = o.num_key_value_heads or o.num_attention_heads
  self:save_hyperparameters(o)
  self.max_length = o.max_position_embeddings -- what lt.generate gives it at most
  self.model = nn.ModuleDict { embed_tokens = nn.Embedding(o.vocab_size, o.hidden_size),
    layers = nn.ModuleList(), norm = nn.RMSNorm(o.hidden_size, { eps = o.rms_norm_eps }) }
  for _ = 1, o.num_hidden_layers do self.model.layers:append(Layer(o)) end
  self.lm_head = nn.Linear(o.hidden_size, o.vocab_size, { bias = false })
  for _, module in ipairs(self:modules()) do
    if module.in_features or module.num_embeddings then nn.init.normal_(module.weight, 0, 0.02) end
  end
  if o.tie_word_embeddings then self.lm_head.weight = self.model.embed_tokens.weight end
end

--- Returns caches for generation, one per layer, for `length` positions (by default the model's
--- maximum): with `model(ids, cache)`, ids are those of the new positions.
function Llama:new_cache(length)
  local cache, most = {}, self.hparams.max_position_embeddings
  length = config.argument(length or most, "integer", "models.llama", "length",
    { min = 1, max = most })
  for i = 1, self.hparams.num_hidden_layers do cache[i] = nn.KVCache(length) end
  return cache
end

--- Returns a plan for lt.parallelize. Options: sequence_parallel, loss_parallel.
function Llama:tensor_parallel_plan(options)
  local o = config.check(options, plan_options, "models.llama: tensor_parallel_plan")
  local Colwise, Rowwise = parallel.ColwiseParallel, parallel.RowwiseParallel
  local between = o.sequence_parallel and parallel.Shard(2) or parallel.Replicate()
  local plan = {
    ["model.embed_tokens"] = Rowwise { output_layouts = between },
    ["model.layers.*.self_attn"] = parallel.AttentionParallel { heads = { "heads", "shared" },
      input_layouts = between },
    ["model.layers.*.self_attn.o_proj"] = Rowwise { output_layouts = between },
    ["model.layers.*.mlp"] = parallel.PrepareModuleInput { input_layouts = between,
      desired_input_layouts = parallel.Replicate(), sum_gradients = true },
    ["model.layers.*.mlp.down_proj"] = Rowwise { output_layouts = between },
    lm_head = Colwise { input_layouts = between,
      output_layouts = o.loss_parallel and parallel.Shard(-1) or parallel.Replicate() },
  }
  for _, name in ipairs { "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
    "mlp.gate_proj", "mlp.up_proj" } do
    plan["model.layers.*." .. name] = Colwise { sum_gradients = false }
  end
  for _, name in ipairs(o.sequence_parallel and { "model.layers.*.input_layernorm",
    "model.layers.*.post_attention_layernorm", "model.norm" } or {}) do
    plan[name] = parallel.SequenceParallel()
  end
  return plan
end

--- Returns the logits and the cache.
---@param ids Tensor [N, T] -> logits [N, T, V]
function Llama:forward(ids, cache)
  local x = self.model.embed_tokens(ids)
  for i, layer in ipairs(self.model.layers) do x = layer(x, cache and cache[i]) end
  local logits = self.lm_head(self.model.norm(x))
  return logits, cache
end

return Llama
