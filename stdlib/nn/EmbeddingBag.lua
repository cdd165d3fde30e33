-- stdlib/nn/EmbeddingBag.lua: sums, means or maxima of the vectors of bags of ids.
-- V number of ids (0..V-1), D size of a vector, B bags, N ids.

local Embedding = require "ltrain.nn.Embedding"
local config = require "ltrain.core.config"
local embedding_bag = require "ltrain.ops.embedding_bag"

local EmbeddingBag = Embedding:extend("EmbeddingBag")

EmbeddingBag.__arguments = "num_embeddings embedding_dim | (max_norm) (norm_type) "
  .. "(scale_grad_by_freq) mode (sparse) (_weight) include_last_offset padding_idx"

EmbeddingBag.options = {
  mode = { type = "string", default = "mean", choices = { "sum", "mean", "max" } },
  padding_idx = { type = "integer", doc = "id that is ignored and not trained" },
  include_last_offset = { type = "boolean", default = false,
    doc = "offsets contain the end of the last bag as an additional element" },
}

--- nn.EmbeddingBag(1000, 64, {mode = "sum"})
function EmbeddingBag:init(num_embeddings, embedding_dim, options)
  local o <const> = config.check(options, self.options, "nn.EmbeddingBag")
  Embedding.init(self, num_embeddings, embedding_dim, { padding_idx = o.padding_idx })
  self.mode, self.include_last_offset = o.mode, o.include_last_offset
end

---@param ids Tensor [B, N] of ids -> [B, D]; or [N] with
---@param offsets Tensor [B]: the start of each bag, from 0
---@param per_sample_weights Tensor as ids: factors, for mode "sum"
function EmbeddingBag:forward(ids, offsets, per_sample_weights)
  local y = embedding_bag(self.weight, ids, { offsets = offsets, mode = self.mode,
    per_sample_weights = per_sample_weights, padding_idx = self.padding_idx,
    include_last_offset = self.include_last_offset })
  return y
end

function EmbeddingBag:extra_repr()
  return ("%d, %d, {mode = %q%s}"):format(self.num_embeddings, self.embedding_dim, self.mode,
    self.padding_idx and (", padding_idx = %d"):format(self.padding_idx) or "")
end

return EmbeddingBag
