--- stdlib/parallel/init.lua: lt.parallel: models and sequences that are divided among ranks.
local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.parallel", "parallel", {
  "loss_parallel", "ring_attention", "ulysses_attention",
  context_parallel = { "context_parallel", "positions" },
  layouts = { "Replicate", "Shard" },
  split_sequence = { "split_sequence", "unsplit_sequence" },
})
