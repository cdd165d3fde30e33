-- stdlib/models/plan_options.lua: options of the method tensor_parallel_plan of language models.

return {
  sequence_parallel = { type = "boolean", default = false,
    doc = "divide norms, dropout and the sums of the residual stream by positions" },
  loss_parallel = { type = "boolean", default = false,
    doc = "leave the logits divided by classes, for lt.parallel.loss_parallel" },
}
