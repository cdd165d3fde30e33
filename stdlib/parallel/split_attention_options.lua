-- stdlib/parallel/split_attention_options.lua: options of ring_attention and ulysses_attention:
-- those of lt.scaled_dot_product_attention, and how the sequence is split among the ranks.
return {
  group = { type = "object", doc = "the ranks that share the sequence; by default all" },
  causal = { type = "boolean", default = false, doc = "queries attend to keys up to their own "
    .. "position in the whole sequence" },
  balance = { type = "boolean", default = true, doc = "the sequence is split as split_sequence "
    .. "does by default; false: rank r has its r-th part" },
  mask = { type = "tensor", doc = "[.., 1, T / N]: of this rank's keys; bool, true for keys that "
    .. "are attended to, or added to the scores" },
  scale = { type = "number", doc = "factor of the scores; by default 1 / sqrt(D)" },
  dropout_p = { type = "number", default = 0, min = 0, max = 1,
    doc = "dropout of the attention weights" },
  enable_gqa = { type = "boolean", default = false, doc = "keys and values may have fewer heads" },
}
