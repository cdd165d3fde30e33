-- stdlib/nn/Embedding.lua: a lookup table of vectors by id.
-- V number of ids (0..V-1), D size of a vector, N any dims.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local initialise = require "ltrain.nn.initialise"

local Embedding = Module:extend("Embedding")

Embedding.__arguments = "num_embeddings embedding_dim | padding_idx"

local OPTIONS <const> = {
  padding_idx = { type = "integer", doc = "id whose vector is zero and is not trained" },
}

--- nn.Embedding(65, 128)
function Embedding:init(num_embeddings, embedding_dim, options)
  local where <const> = "nn." .. self.__name
  self.num_embeddings = config.argument(num_embeddings, "integer", where, "num_embeddings",
    { min = 1 })
  self.embedding_dim = config.argument(embedding_dim, "integer", where, "embedding_dim",
    { min = 1 })
  local id = config.check(options, OPTIONS, where).padding_idx
  if id and (id < 0 or id >= num_embeddings) then
    errors.blame("%s: padding_idx must be an id in 0..%d: got %d", where, num_embeddings - 1, id)
  end
  self.padding_idx = id
  self.weight = c.parameter(c.empty(num_embeddings, embedding_dim))
  initialise.normal_(self.weight)
  if id then
    local _ <close> = c.no_grad()
    self.weight:select(1, id + 1):fill_(0)
  end
end

---@param ids Tensor [N] of ids -> [N, D]
function Embedding:forward(ids)
  if not c.is_tensor(ids) then
    errors.blame("nn.Embedding: the ids must be a tensor, got %s", errors.show(ids))
  end
  local vectors = c.embedding(self.weight, ids, self.padding_idx)
  return vectors
end

function Embedding:extra_repr()
  return ("%d, %d%s"):format(self.num_embeddings, self.embedding_dim,
    self.padding_idx and (", {padding_idx = %d}"):format(self.padding_idx) or "")
end

return Embedding
