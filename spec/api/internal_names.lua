-- spec/api/internal_names.lua: public names of PyTorch and Lightning that no script or few have a
-- use for, most of them internals, and members of objects: asking an object for those gives nil,
-- not an error.

local NAMES <const> = {
  torch = [[ModuleDict BufferDict ParameterDict *Type *Storage* *_storage Script* Sym* sym_* fork
    wait Future cond *ArgumentSpec Aggregation* AliasDb Argument Benchmark* Block CallStack
    Capsule Code CompilationUnit ConcreteModule* DeepCopyMemoTable Disable* Dispatch* ErrorReport
    Exclude* ExecutionPlan FileCheck FunctionSchema Gradient Graph* IODescriptor JITException
    LiteScriptModule *Logger Node OperatorInfo PyTorchFile* StaticModule Tag ThroughputBenchmark
    TracingState Use Value import_ir* merge_type* parse_* unify_type_list *_copy combinations
    empty_* hash_tensor feature_dropout_ *warn_always* set_flush_denormal native_channel_shuffle
    thread_safe_generator typename adjoint *_window broadcast_tensors chain_matmul conj_physical*
    conv_tbc detach_ fix* ger get_device_module hspmm is_conj is_inference* is_neg is_nonzero
    lobpcg logspace poisson positive qscheme resolve_* row_stack sgn* smm sspaddmm trapz unsafe_*
    vdot arctan2 as_strided* can_cast promote_types result_type set_printoptions eig symeig
    *deterministic*]],
  ["torch.Tensor"] = [[grad_dtype hash_tensor ipu is_distributed is_ipu is_maia is_mkldnn is_mtia
    is_set_to is_shared is_vulkan module_load reinforce slice_inverse volatile adjoint as_subclass
    *col_indices *row_indices cauchy_ cdouble cfloat chalf conj_physical* dense_dim dim_order fix*
    ger *_copy is_coalesced is_conj is_inference is_neg is_nested is_nonzero is_same_size
    output_nr positive qscheme resolve_* retains_grad sgn* smm split_with_sizes sspaddmm
    sum_to_size to_padded_tensor unsafe_* vdot arctan2* as_strided* coalesce dist eig element_size
    exponential_ fill_diagonal_ geometric_ grad_fn index indices int_repr is_signed istft itemsize
    log_normal_ name nbytes arctan2_ q_* random_ stft symeig to_mkldnn values apply_ map*_
    *data_ptr *storage* record_stream set_ share_memory_]],
  ["torch.autograd"] = [[enforce_grad_layout_policy set_multithreading_enabled NestedIOFunction
    inference_mode set_detect_anomaly]],
  ["torch.fft"] = "Tensor",
  ["torch.linalg"] = "ldl_* LinAlgError matmul",
  ["torch.nn.init"] = "dirac* sparse*",
  ["torch.func"] = "debug_unwrap rearrange replace_all_batch_norm_modules_ functionalize linearize",
  ["torch.nn"] = [[factory_kwargs AdaptiveLog* CrossMapLRN2d FractionalMaxPool*
    LinearCrossEntropy* Container NLLLoss2d RNNBase RNNCellBase Softmax2d]],
  ["torch.nn.Module"] = [[get_extra_state set_extra_state ipu mtia xpu share_memory
    register_backward_hook compile]],
  ["torch.nn.functional"] = [[ScalingType SwizzleType Tensor assert_int_or_pair boolean_dispatch
    grouped_mm *handle_torch_function has_torch_function* native_channel_shuffle scaled_*mm*
    conv_tbc fractional_max_pool* linear_cross_entropy multi_head_attention_forward]],
  ["torch.nn.utils"] = "convert_conv* skip_init fuse_*_weights remove_*_norm clip_grad_norm",
  ["torch.optim"] = "swap_in_optimizer_params_and_state",
  ["torch.utils.data"] = [[DataChunk *datapipe* *DataPipe non_deterministic argument_validation
    runtime_* ChainDataset]],
  ["torch.distributions"] = [[*Transform Cauchy Chi2 ContinuousBernoulli ExponentialFamily
    FisherSnedecor GeneralizedPareto Half* InverseGamma Kumaraswamy LKJCholesky LogisticNormal
    Multinomial OneHotCategoricalStraightThrough Pareto Relaxed* VonMises Wishart *_to *_transform
    register_kl]],
  ["torch.optim.swa_utils"] = "get_*avg_fn",
  ["torch.distributions.Distribution"] = "*", ["torch.optim.Optimizer"] = "*",
  ["torchmetrics.Metric"] = "*", ["lightning.fabric.Fabric"] = "*",
  ["lightning.pytorch.tuner.Tuner"] = "*", ["lightning.fabric"] = "is_wrapped",
  ["lightning.pytorch.plugins.environments"] = [[XLAEnvironment ClusterEnvironment
    LightningEnvironment]],
  ["lightning.pytorch.utilities.combined_loader"] = "sized_len tree_unflatten",
  ["lightning.pytorch.utilities"] = [[disable_* is_picklable is_shared_filesystem suggested_max_*
    AttributeDict GradClipAlgorithmType *_shared_parameters measure_flops grad_norm
    move_data_to_device]],
  ["lightning.pytorch.accelerators"] = "find_usable_cuda_devices",
  ["lightning.pytorch.callbacks"] = "SpikeDetection",
  ["lightning.pytorch.plugins"] = "LayerSync TorchSyncBatchNorm",
  ["lightning.pytorch.cli"] = "instantiate_*",
  ["lightning.pytorch.loggers.Logger"] = "after_save_checkpoint group_separator root_dir log_graph",
  ["lightning.pytorch.Trainer"] = "distributed_sampler_kwargs progress_bar_callback",
  ["lightning.pytorch.LightningModule"] = [[fabric ipu mtia xpu register_backward_hook
    share_memory remove_ignored_hparams compile configure_sharded_model hparams_initial]],
  ["lightning.pytorch.LightningDataModule"] = "hparams_initial remove_ignored_hparams",
}

--- Whether a row of signatures is one of them.
return function(row)
  for pattern in (NAMES[row.room] or ""):gmatch "%S+" do
    if row.name:find("^" .. pattern:gsub("%*", ".*") .. "$") then return true end
  end
end
