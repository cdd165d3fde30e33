-- stdlib/models/gpt2.lua: GPT-2, with the names of Hugging Face's GPT2LMHeadModel.
-- N batch, T positions, E features, V vocabulary.
--
-- Radford et al.: Language models are unsupervised multitask learners, 2019. The defaults are those
-- of the smallest, 124 million parameters.

local c = require "ltrain.c"
local cached_attention = require "ltrain.models.cached_attention"
local config = require "ltrain.core.config"
local nn = require "ltrain.nn"
local parallel = require "ltrain.parallel"
local plan_options = require "ltrain.models.plan_options"
local split_sequence = require "ltrain.core.split_sequence"

-- A linear layer whose weight is [in, out], as the files have it.
local Conv1D = nn.Module:extend("Conv1D")

Conv1D.transposed_weight = true -- for lt.parallel

function Conv1D:init(inputs, outputs, std)
  self.weight = c.parameter(c.empty(inputs, outputs):normal_(0, std))
  self.bias = c.parameter(c.zeros(outputs))
end

function Conv1D:forward(x)
  local y = c.linear(x, self.weight:transpose(1, 2), self.bias)
  return y
end

local Attention = nn.Module:extend("Attention")

function Attention:init(o)
  self.n_head, self.p = o.n_head, o.dropout
  self.c_attn = Conv1D(o.n_embd, 3 * o.n_embd, 0.02)
  self.c_proj = Conv1D(o.n_embd, o.n_embd, 0.02 / math.sqrt(2 * o.n_layer))
  self.resid_dropout = nn.Dropout(o.dropout)
end

function Attention:forward(x, cache)
  local n, t = table.unpack(x.shape)
  local qkv = self.c_attn(x):view(n, t, 3, self.n_head, -1):permute(3, 1, 4, 2, 5)
  local y = cached_attention(qkv[1], qkv[2], qkv[3], cache, self.training and self.p or 0,
    self.head_range)
  y = self.resid_dropout(self.c_proj(y))
  return y
end

local MLP = nn.Module:extend("MLP")

function MLP:init(o)
  self.c_fc = Conv1D(o.n_embd, 4 * o.n_embd, 0.02)
  self.c_proj = Conv1D(4 * o.n_embd, o.n_embd, 0.02 / math.sqrt(2 * o.n_layer))
  self.dropout = nn.Dropout(o.dropout)
end

function MLP:forward(x)
  local y = self.dropout(self.c_proj(self.c_fc(x):gelu_tanh()))
  return y
end

local Block = nn.Module:extend("Block")

function Block:init(o)
  self.ln_1, self.attn = nn.LayerNorm(o.n_embd), Attention(o)
  self.ln_2, self.mlp = nn.LayerNorm(o.n_embd), MLP(o)
end

function Block:forward(x, cache)
  x = x + self.attn(self.ln_1(x), cache)
  x = x + self.mlp(self.ln_2(x))
  return x
end

local Transformer = nn.Module:extend("Transformer")

function Transformer:init(o)
  self.wte, self.wpe = nn.Embedding(o.vocab_size, o.n_embd), nn.Embedding(o.n_positions, o.n_embd)
  nn.init.normal_(self.wte.weight, 0, 0.02)
  nn.init.normal_(self.wpe.weight, 0, 0.02)
  self.drop = nn.Dropout(o.dropout)
  self.h = nn.ModuleList()
  for _ = 1, o.n_layer do self.h:append(Block(o)) end
  self.ln_f = nn.LayerNorm(o.n_embd)
end

function Transformer:forward(ids, cache)
  local seen = cache and cache[1].length or 0
  local positions = split_sequence.positions(ids.shape[2], seen, ids.device)
  local x = self.drop(self.wte(ids) + self.wpe(positions))
  for i, block in ipairs(self.h) do x = block(x, cache and cache[i]) end
  x = self.ln_f(x)
  return x
end

local GPT2 = nn.Module:extend("GPT2")
GPT2.__arguments = "|"

local OPTIONS <const> = {
  vocab_size = { type = "integer", default = 50257, min = 1 },
  n_positions = { type = "integer", default = 1024, min = 1, doc = "the longest sequence" },
  n_embd = { type = "integer", default = 768, min = 1, doc = "features of a position" },
  n_layer = { type = "integer", default = 12, min = 1 },
  n_head = { type = "integer", default = 12, min = 1 },
  dropout = { type = "number", default = 0.1, min = 0, max = 1 },
}

--- lt.models.gpt2{vocab_size = 65, n_positions = 64, n_embd = 128, n_layer = 4, n_head = 4}
function GPT2:init(options)
  local o = config.check(options, OPTIONS, "models.gpt2")
  self:save_hyperparameters(o)
  self.max_length = o.n_positions -- what lt.generate gives it at most
  self.transformer = Transformer(o)
  self.lm_head = nn.Linear(o.n_embd, o.vocab_size, { bias = false })
  self.lm_head.weight = self.transformer.wte.weight
end

--- Returns caches for generation, one per layer, for `length` positions (by default the model's
--- maximum): with `model(ids, cache)`, ids are those of the new positions.
function GPT2:new_cache(length)
  local cache, most = {}, self.hparams.n_positions
  length = config.argument(length or most, "integer", "models.gpt2", "length",
    { min = 1, max = most })
  for i = 1, self.hparams.n_layer do cache[i] = nn.KVCache(length) end
  return cache
end

--- Returns a plan for lt.parallelize. Options: sequence_parallel, loss_parallel.
function GPT2:tensor_parallel_plan(options)
  local o = config.check(options, plan_options, "models.gpt2: tensor_parallel_plan")
  local Colwise, Rowwise = parallel.ColwiseParallel, parallel.RowwiseParallel
  local between = o.sequence_parallel and parallel.Shard(2) or parallel.Replicate()
  local plan = {
    ["transformer.wte"] = Rowwise { output_layouts = between },
    ["transformer.h.*.attn"] = parallel.AttentionParallel { heads = { "n_head" },
      input_layouts = between },
    ["transformer.h.*.attn.c_attn"] = Colwise { blocks = 3, sum_gradients = false },
    ["transformer.h.*.attn.c_proj"] = Rowwise { output_layouts = between },
    ["transformer.h.*.mlp.c_fc"] = Colwise { input_layouts = between },
    ["transformer.h.*.mlp.c_proj"] = Rowwise { output_layouts = between },
    lm_head = Colwise { input_layouts = between,
      output_layouts = o.loss_parallel and parallel.Shard(-1) or parallel.Replicate() },
  }
  if not o.sequence_parallel then return plan end
  plan["transformer.wpe"] = parallel.PrepareModuleOutput { output_layouts = parallel.Replicate(),
    desired_output_layouts = parallel.Shard(1) }
  for _, name in ipairs { "drop", "h.*.ln_1", "h.*.ln_2", "h.*.attn.resid_dropout",
    "h.*.mlp.dropout", "ln_f" } do
    plan["transformer." .. name] = parallel.SequenceParallel()
  end
  return plan
end

--- Returns the logits and the cache.
---@param ids Tensor [N, T] -> logits [N, T, V]
function GPT2:forward(ids, cache)
  local logits = self.lm_head(self.transformer(ids, cache))
  return logits, cache
end

return GPT2
