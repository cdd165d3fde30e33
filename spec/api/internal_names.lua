-- spec/api/internal_names.lua: public names of PyTorch and Lightning that no script has a use for,
-- most of them internals, and members of objects: asking an object for those gives nil, not an
-- error.

local NAMES <const> = {
  torch = [[
    ModuleDict BufferDict ParameterDict *Type *Storage* *_storage Script* Sym* sym_* fork wait
    Future cond *ArgumentSpec Aggregation* AliasDb Argument Benchmark* Block CallStack Capsule
    Code CompilationUnit ConcreteModule* DeepCopyMemoTable Disable* Dispatch* ErrorReport Exclude*
    ExecutionPlan FileCheck FunctionSchema Gradient Graph* IODescriptor JITException
    LiteScriptModule *Logger Node OperatorInfo PyTorchFile* StaticModule Tag ThroughputBenchmark
    TracingState Use Value import_ir* merge_type* parse_* unify_type_list *_copy combinations
    empty_* hash_tensor feature_dropout_ *warn_always* set_flush_denormal native_channel_shuffle
    thread_safe_generator typename]],
  ["torch.Tensor"] = [[grad_dtype hash_tensor ipu is_distributed is_ipu is_maia is_mkldnn is_mtia
    is_set_to is_shared is_vulkan module_load reinforce slice_inverse volatile]],
  ["torch.autograd"] = "enforce_grad_layout_policy set_multithreading_enabled",
  ["torch.fft"] = "Tensor", ["torch.func"] = "debug_unwrap rearrange",
  ["torch.nn"] = "factory_kwargs", ["torch.nn.Module"] = "get_extra_state set_extra_state",
  ["torch.nn.functional"] = [[ScalingType SwizzleType Tensor assert_int_or_pair boolean_dispatch
    grouped_mm *handle_torch_function has_torch_function* native_channel_shuffle scaled_*mm*]],
  ["torch.utils.data"] = "DataChunk *datapipe* non_deterministic argument_validation runtime_*",
  ["torch.distributions.Distribution"] = "*", ["torch.optim.Optimizer"] = "*",
  ["torchmetrics.Metric"] = "*", ["lightning.fabric.Fabric"] = "*",
  ["lightning.pytorch.tuner.Tuner"] = "*", ["lightning.fabric"] = "is_wrapped",
  ["lightning.pytorch.plugins.environments"] = "XLAEnvironment",
  ["lightning.pytorch.utilities.combined_loader"] = "sized_len tree_unflatten",
  ["lightning.pytorch.utilities"] = "disable_* is_picklable is_shared_filesystem suggested_max_*",
}

--- Whether a row of signatures is one of them.
return function(row)
  for pattern in (NAMES[row.room] or ""):gmatch "%S+" do
    if row.name:find("^" .. pattern:gsub("%*", ".*") .. "$") then return true end
  end
end
