-- spec/api/parameters.lua: parameters of PyTorch and torchmetrics that are not here, with the
-- reason.
local parameters = {}

-- Wherever they are.
local EVERYWHERE <const> = [[
alpha: of sums and differences: x + alpha * y
stable: sorting is stable already
implicit _instance _stacklevel _preallocate_and_copy _use_new_zipfile_serialization
  _disable_byteorder_record: this is PyTorch's own
rounding_mode: x:floor_divide(y), (x / y):trunc()
decimals: (x * 100):round() / 100
as_tuple: x:nonzero() is one tensor [n, dims]
out_dtype out_int32 return_complex: a result's dtype follows from the operands; x:to changes it
driver compute_mode: there is one way
pickle_module pickle_protocol weights_only mmap: files hold data alone
with_kwargs kwargs: a table of options is one of the arguments
enable_nested_tensor mask_check outer_jacobian_strategy: there is one way
multidim_average: over all positions
compute_groups: metrics of one kind count once already
nan_strategy: NaNs are kept
aggregation: the mean over queries
timeout multiprocessing_context prefetch_factor pin_memory_device in_order: loaders' workers end
  with the script, and memory is pinned for the device of the Trainer
return_full_image return_contrast_sensitivity extended_summary backend iou_type input_format
  use_stemmer normalizer tokenizer: this part is not here
fast_mode masked nondet_tol raise_exception check_backward_ad check_batched_forward_grad
  check_batched_grad check_forward_ad check_grad_dtypes check_undefined_grad check_fwd_over_rev
  check_rev_over_rev gen_non_contig_grad_outputs: gradcheck compares all of it, in f64
device dtype: a module or a metric is moved by :to(device); functions that make tensors take both
requires_grad: lt.parameter(x) has gradients, and x.requires_grad can be set
generator: random numbers are those of lt.seed
foreach fused capturable differentiable: one step is fused already, and not differentiated
validate_args: labels and scores are always checked
cache_size: transforms keep nothing
last_epoch: a schedule goes on by load_state_dict
inplace: x:relu_() and its like write into x
max_norm norm_type scale_grad_by_freq sparse sparse_grad _weight _freeze: gradients are dense, and
  rows of embeddings are not renormed
non_blocking copy: copies to a device are ordered with its work
remove_duplicate memo: each comes once
orig_func: by place, the function to call
batch_first: layers of attention have the batch first
]]

-- Of one function or class.
local OF <const> = [[
torch.Tensor.backward inputs: of lt.autograd.backward
torch.Tensor.requires_grad_ mode: requires_grad, as in PyTorch's manual
torch.Tensor.uniform_ from_: from, as in PyTorch's manual
torch.autocast cache_enabled enabled: lt.autocast(false) is the scope without it; nothing is cached
torch.autograd.detect_anomaly check_nan: an anomaly is a NaN
torch.autograd.grad is_grads_batched materialize_grads: a loop over them; allow_unused gives nil
torch.Tensor.bernoulli p: lt.full(x.shape, p):bernoulli()
torch.bernoulli p: lt.full(x.shape, p):bernoulli()
torch.nn.functional.scaled_mm bias output_dtype use_fast_accum swizzle_a swizzle_b contraction_dim:
  scales are of whole matrices, sums are f32; y + bias, and dtype of the result
torch.Tensor.unique dim: of all elements
torch.Tensor.unique_consecutive dim: of all elements
torch.repeat_interleave output_size: it is counted
torch.Tensor.repeat_interleave output_size: it is counted
torch.autograd.backward grad_variables: an old name of grad_tensors
torch.autograd.gradcheck atol eps rtol: they are those of f64
torch.autograd.gradgradcheck atol eps rtol grad_outputs: they are those of f64
torch.distributions.Distribution batch_shape event_shape: a subclass's init sets them
torch.func.jvp strict: results that do not depend on an input have zeros
torch.func.vjp has_aux: the function returns its other results
torch.hamming_window alpha beta: 0.54 and 0.46
torch.isin assume_unique: it is not assumed
torch.nn.BatchNorm1d bias: {affine = false} has neither weight nor bias
torch.nn.BatchNorm2d bias: {affine = false} has neither weight nor bias
torch.nn.BatchNorm3d bias: {affine = false} has neither weight nor bias
torch.nn.SyncBatchNorm bias process_group: {affine = false} has neither weight nor bias
torch.nn.InstanceNorm1d bias: {affine = false} has neither weight nor bias
torch.nn.InstanceNorm2d bias: {affine = false} has neither weight nor bias
torch.nn.InstanceNorm3d bias: {affine = false} has neither weight nor bias
torch.nn.GroupNorm bias: {affine = false} has neither weight nor bias
torch.nn.ConvTranspose1d padding_mode: 'zeros' alone
torch.nn.ConvTranspose2d padding_mode: 'zeros' alone
torch.nn.ConvTranspose3d padding_mode: 'zeros' alone
torch.nn.GRU proj_size: of LSTM alone
torch.nn.RNN proj_size: of LSTM alone
torch.nn.Hardtanh max_value min_value: old names of max_val and min_val
torch.nn.Module.named_modules prefix: names begin at the module
torch.nn.Module.set_submodule strict: one that is not there is added
torch.nn.ModuleList modules: a list of them
torch.nn.ParameterDict parameters: a table of them
torch.nn.ParameterList values: a list of them
torch.nn.MultiheadAttention add_bias_kv add_zero_attn: this part is not here
torch.nn.Transformer custom_decoder custom_encoder: nn.TransformerEncoder and nn.TransformerDecoder
torch.nn.functional.instance_norm use_input_stats: nn.InstanceNorm2d keeps running means
torch.nn.functional.gelu approximate: it is taken, by place too: 'tanh' is lt.gelu_tanh
torch.nn.functional.huber_loss weight: reduction = 'none', times the weight
torch.nn.functional.l1_loss weight: reduction = 'none', times the weight
torch.nn.functional.mse_loss weight: reduction = 'none', times the weight
torch.nn.functional.unfold dilation padding stride: of im2col, which takes them
torch.nn.init.uniform_ a b: low and high, by place
torch.optim.Optimizer defaults: a subclass has rows in its field options
torch.optim.lr_scheduler.ChainedScheduler optimizer: the schedulers know it
torch.optim.lr_scheduler.LambdaLR lr_lambda: by place
torch.optim.lr_scheduler.MultiplicativeLR lr_lambda: by place
torch.optim.swa_utils.AveragedModel multi_avg_fn: avg_fn
torch.Tensor.slice_scatter end start: from and to, as of x:slice
torch.slice_scatter end start: from and to, as of x:slice
torch.nn.functional.triplet_margin_with_distance_loss distance_function margin reduction swap: by
  name, the options of nn.TripletMarginWithDistanceLoss
torch.searchsorted side sorter: right = true; a sorted sequence
torch.stft align_to_window: windows lie in the middle of a frame
torch.utils.data.ConcatDataset datasets: by place, each
torchmetrics.Metric.add_state dist_reduce_fx persistent: reduce
torchmetrics.Metric.load_state_dict assign strict: states are all there
torchmetrics.Metric.state_dict destination keep_vars prefix: a table of its own
torchmetrics.PeakSignalNoiseRatio dim reduction: over all elements
torchmetrics.image.PeakSignalNoiseRatio dim reduction: over all elements
torchmetrics.detection.MeanAveragePrecision average: 'macro'
]]

-- What goes by name alone, for its place there is behind one that is not here.
local BY_NAME <const> = [[
torch.autocast: behind device_type: it applies to every device
torch.autograd.backward: behind grad_variables
torch.nn.functional.embedding_bag: behind max_norm, norm_type and scale_grad_by_freq
torch.nn.functional.log_softmax torch.nn.functional.softmax torch.nn.functional.softmin: dtype is
  the third, as of torch.softmax; behind _stacklevel there
]]

--- Rows that must be of use, a set.
parameters.keys = {}

local everywhere, of, by_name = {}, {}, {}

for names in EVERYWHERE:gsub("\n  ", " "):gmatch "([^\n:]+): [^\n]+" do
  for name in names:gmatch "%S+" do everywhere[name], parameters.keys[name] = true, true end
end
for full, names in OF:gsub("\n  ", " "):gmatch "(%S+) ([^\n:]+): [^\n]+" do
  for name in names:gmatch "%S+" do
    of[full .. " " .. name], parameters.keys[full .. " " .. name] = true, true
  end
end
for names in BY_NAME:gsub("\n  ", " "):gmatch "([^\n:]+): [^\n]+" do
  for full in names:gmatch "%S+" do by_name[full], parameters.keys[full] = true, true end
end

--- The row that says why a parameter is not as recorded; nil: none does.
function parameters.reason(full, name, is_named)
  local own = full .. " " .. name
  if of[own] then return own end
  if is_named then return by_name[full] and full end
  return everywhere[name] and name
end

return parameters
