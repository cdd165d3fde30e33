-- stdlib/models/keys.lua: lt.models.keys, renames entries of other libraries' state dicts.
--
-- Most names are equal; the differences are prefixes, masks that are saved with the weights, and
-- older names.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"
local tree = require "ltrain.core.tree"

local keys = {}

-- The tensors of `state`, each under the name that rename(name) returns; nil leaves it out.
local function renamed(state, where, rename)
  if type(state) ~= "table" then
    errors.blame("models.keys.%s: a state must be a table of tensors: got %s", where,
      errors.show(state))
  end
  local result = {}
  for name, tensor in tree.pairs(state) do
    local new = type(name) == "string" and c.is_tensor(tensor) and rename(name)
    if new then result[new] = tensor end
  end
  return result
end

--- For lt.models.gpt2: from GPT2LMHeadModel or GPT2Model, without the masks of older files.
function keys.gpt2(state)
  return renamed(state, "gpt2", function(name)
    if name:find "%.attn%.bias$" or name:find "%.attn%.masked_bias$" then return nil end
    if name:find "^transformer%." or name:find "^lm_head%." then return name end
    return "transformer." .. name
  end)
end

--- For lt.models.bert: from BertModel or a model with a head, which is omitted; gamma and beta of
--- older files are renamed to weight and bias.
function keys.bert(state)
  return renamed(state, "bert", function(name)
    name = name:gsub("^bert%.", ""):gsub("LayerNorm%.gamma$", "LayerNorm.weight")
      :gsub("LayerNorm%.beta$", "LayerNorm.bias")
    if name == "embeddings.position_ids" then return nil end
    return (name:find "^embeddings%." or name:find "^encoder%." or name:find "^pooler%.") and name
  end)
end

--- For lt.models.llama: from LlamaForCausalLM or LlamaModel, without the frequencies of older
--- files.
function keys.llama(state)
  return renamed(state, "llama", function(name)
    if name:find "rotary_emb%.inv_freq$" then return nil end
    if name:find "^model%." or name:find "^lm_head%." then return name end
    return "model." .. name
  end)
end

return strict_arity.all(keys, "models.keys")
