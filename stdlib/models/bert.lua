-- stdlib/models/bert.lua: BERT, with the parameter names of Hugging Face's BertModel.
-- N batch, T positions, E features.
--
-- Devlin et al.: BERT, 2018. The defaults are those of bert-base-uncased.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local nn = require "ltrain.nn"
local parallel = require "ltrain.parallel"
local scaled_attention = require "ltrain.nn.scaled_attention"
local split_sequence = require "ltrain.core.split_sequence"

local Embeddings = nn.Module:extend("Embeddings")

function Embeddings:init(o)
  self.word_embeddings = nn.Embedding(o.vocab_size, o.hidden_size)
  self.position_embeddings = nn.Embedding(o.max_position_embeddings, o.hidden_size)
  self.token_type_embeddings = nn.Embedding(o.type_vocab_size, o.hidden_size)
  self.LayerNorm = nn.LayerNorm(o.hidden_size, { eps = 1e-12 })
  self.dropout = nn.Dropout(o.dropout)
end

function Embeddings:forward(ids, types)
  local positions = split_sequence.positions(ids.shape[2], 0, ids.device)
  local x = self.word_embeddings(ids) + self.position_embeddings(positions)
  x = x + self.token_type_embeddings(types or c.zeros_like(ids))
  x = self.dropout(self.LayerNorm(x))
  return x
end

local SelfAttention = nn.Module:extend("SelfAttention")

function SelfAttention:init(o)
  local width = o.hidden_size
  self.heads, self.p = o.num_attention_heads, o.dropout
  self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
  self.value = nn.Linear(width, width)
end

function SelfAttention:forward(x, key_mask)
  local n, t = table.unpack(x.shape)
  local function split(y) return y:view(n, t, self.heads, -1):transpose(2, 3) end
  local mask = key_mask and key_mask:reshape(n, 1, 1, t)
  local y = scaled_attention(split(self.query(x)), split(self.key(x)), split(self.value(x)), mask,
    { dropout_p = self.training and self.p or 0 }, self.head_range)
  return y:transpose(2, 3):flatten(3)
end

-- norm(x + dense(y)), after a part that made y of x.
local Output = nn.Module:extend("Output")

function Output:init(inputs, o)
  self.dense = nn.Linear(inputs, o.hidden_size)
  self.LayerNorm = nn.LayerNorm(o.hidden_size, { eps = 1e-12 })
  self.dropout = nn.Dropout(o.dropout)
end

function Output:forward(y, x)
  y = self.LayerNorm(self.dropout(self.dense(y)) + x)
  return y
end

local Layer = nn.Module:extend("Layer")

function Layer:init(o)
  self.attention = nn.ModuleDict { self = SelfAttention(o), output = Output(o.hidden_size, o) }
  self.intermediate = nn.ModuleDict { dense = nn.Linear(o.hidden_size, o.intermediate_size) }
  self.output = Output(o.intermediate_size, o)
end

function Layer:forward(x, key_mask)
  x = self.attention.output(self.attention.self(x, key_mask), x)
  x = self.output(self.intermediate.dense(x):gelu(), x)
  return x
end

local BERT = nn.Module:extend("BERT")
BERT.__arguments = "|"

local OPTIONS <const> = {
  vocab_size = { type = "integer", default = 30522, min = 1 },
  hidden_size = { type = "integer", default = 768, min = 1, doc = "features of a position" },
  num_hidden_layers = { type = "integer", default = 12, min = 1 },
  num_attention_heads = { type = "integer", default = 12, min = 1 },
  intermediate_size = { type = "integer", default = 3072, min = 1 },
  max_position_embeddings = { type = "integer", default = 512, min = 1,
    doc = "the longest sequence" },
  type_vocab_size = { type = "integer", default = 2, min = 1, doc = "number of segment types" },
  dropout = { type = "number", default = 0.1, min = 0, max = 1 },
}

--- lt.models.bert{vocab_size = 1000, hidden_size = 128, num_hidden_layers = 2}
function BERT:init(options)
  local o = config.check(options, OPTIONS, "models.bert")
  self:save_hyperparameters(o)
  self.embeddings = Embeddings(o)
  self.encoder = nn.ModuleDict { layer = nn.ModuleList() }
  for _ = 1, o.num_hidden_layers do self.encoder.layer:append(Layer(o)) end
  self.pooler = nn.ModuleDict { dense = nn.Linear(o.hidden_size, o.hidden_size) }
  for _, module in ipairs(self:modules()) do
    if module.in_features or module.num_embeddings then nn.init.normal_(module.weight, 0, 0.02) end
    if module.in_features then nn.init.zeros_(module.bias) end
  end
end

local PLAN <const> = {
  sequence_parallel = { type = "boolean", default = false,
    doc = "divide norms, dropout and the sums of the residual stream by positions" },
}

-- Adds what is done by positions.
local function add_sequences(plan, layers)
  local Shard, Replicate = parallel.Shard, parallel.Replicate
  local function cut(from, to)
    return parallel.PrepareModuleOutput { output_layouts = from, desired_output_layouts = to }
  end
  plan["embeddings.position_embeddings"] = cut(Replicate(), Shard(1))
  plan["embeddings.token_type_embeddings"] = cut(Replicate(), Shard(2))
  for _, name in ipairs { "embeddings", "encoder.layer.*.attention.output",
    "encoder.layer.*.output" } do
    plan[name .. ".LayerNorm"] = parallel.SequenceParallel()
    plan[name .. ".dropout"] = parallel.SequenceParallel()
  end
  plan["encoder.layer." .. layers - 1] = cut(Shard(2), Replicate())
end

--- Returns a plan for lt.parallelize. Options: sequence_parallel.
function BERT:tensor_parallel_plan(options)
  local o = config.check(options, PLAN, "models.bert: tensor_parallel_plan")
  local Colwise, Rowwise = parallel.ColwiseParallel, parallel.RowwiseParallel
  local between = o.sequence_parallel and parallel.Shard(2) or parallel.Replicate()
  local plan = {
    ["embeddings.word_embeddings"] = Rowwise { output_layouts = between },
    ["encoder.layer.*.attention.self"] = parallel.AttentionParallel { heads = { "heads" },
      input_layouts = between },
    ["encoder.layer.*.attention.output.dense"] = Rowwise { output_layouts = between },
    ["encoder.layer.*.intermediate.dense"] = Colwise { input_layouts = between },
    ["encoder.layer.*.output.dense"] = Rowwise { output_layouts = between },
  }
  for _, name in ipairs { "query", "key", "value" } do
    plan["encoder.layer.*.attention.self." .. name] = Colwise { sum_gradients = false }
  end
  if o.sequence_parallel then add_sequences(plan, self.hparams.num_hidden_layers) end
  return plan
end

local CALL <const> = {
  token_type_ids = { type = "tensor", doc = "[N, T]: segment types; 0 by default" },
  key_mask = { type = "tensor", doc = "bool [N, T]: true for positions that are not padding" },
}

--- Returns the features of all positions, and the pooled features of the first position, [N, E].
---@param ids Tensor [N, T] -> [N, T, E]
function BERT:forward(ids, options)
  local o = config.check(options, CALL, "models.bert")
  local x = self.embeddings(ids, o.token_type_ids)
  for _, layer in ipairs(self.encoder.layer) do x = layer(x, o.key_mask) end
  local pooled = self.pooler.dense(x:select(2, 1)):tanh()
  return x, pooled
end

return BERT
