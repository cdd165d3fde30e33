-- stdlib/core/torch_names.lua: the public names of PyTorch and torchmetrics that are not here, by
-- room, and what to write in place of them, or why there is nothing.
--
--   absolute = x:abs()                            what to write
--   Lazy*: sizes are given when a layer is made   why; `*` stands for any letters
--   *_ = x = x:%1(...)                            ... which are %1 in the text
--
-- Errors of unknown names read it (core/foreign_names.lua), and `ltrain check`; it is loaded by the
-- first of them. spec/api/torch_spec.lua holds it against what these libraries have.

local c = require "ltrain.c"

local torch_names = {}

--- What is said, by room: "lt", "tensor", both of them, ...
torch_names.texts = {}

local texts <const> = torch_names.texts

-- Names of torch and methods of tensors.
texts.both = [[
absolute = x:abs()
arccos = x:acos()
arccosh = x:acosh()
arcsin = x:asin()
arcsinh = x:asinh()
arctan = x:atan()
arctan2 = x:atan2(y)
arctanh = x:atanh()
clip = x:clamp(min, max)
clamp_max = x:clamp{max = value}
clamp_min = x:clamp{min = value}
divide true_divide = x / y
multiply = x * y
negative = -x
positive = x
subtract = x - y
fix = x:trunc()
greater = x:gt(y)
greater_equal = x:ge(y)
less = x:lt(y)
less_equal = x:le(y)
not_equal = x:ne(y)
moveaxis = x:movedim(from, to)
swapaxes swapdims = x:transpose(a, b)
vdot chain_matmul = x:matmul(y)
vander = lt.linalg.vander(x)
ger = x:outer(y)
sspaddmm hspmm smm: there are no sparse tensors
trapz = lt.trapezoid(y, x)
range = lt.arange(start, stop + step, step)
logspace = lt.linspace(a, b, n):mul(math.log(base)):exp()
normal = lt.randn(size) * std + mean
poisson = lt.distributions.Poisson(rate):sample()
combinations = two loops over the positions
cross = lt.linalg.cross(x, y)
det = lt.linalg.det(x)
slogdet = lt.linalg.slogdet(x)
inverse = lt.linalg.inv(x)
matrix_power = lt.linalg.matrix_power(x, n)
cholesky = lt.linalg.cholesky(x)
lstsq = lt.linalg.lstsq(A, B)
qr = lt.linalg.qr(x)
svd = lt.linalg.svd(x)
symeig = lt.linalg.eigh(x)
eig: there is no eigenvalue decomposition of matrices that are not symmetric; lt.linalg.eigh has
  these
solve = lt.linalg.solve(A, B)
gradient = lt.diff(x), or differences of narrow
psi = x:digamma()
sgn = x:sign()
is_nonzero = x:item() ~= 0
is_floating_point = x.dtype:find "f" ~= nil
is_complex isreal is_conj is_neg real imag conj conj_physical resolve_conj resolve_neg angle polar
  complex view_as_complex view_as_real: tensors have no complex dtype; the transforms of lt.fft
  return their parts in a last dim of size 2
adjoint = x:transpose(-2, -1)
as_strided as_strided_scatter: a tensor's strides are not chosen; unfold, diagonal and expand are
  views
narrow_copy = x:narrow(dim, start, length):clone()
split_with_sizes_copy = x:split(sizes, dim)
alias_copy detach_copy = x:detach():clone()
as_strided_copy col_indices_copy crow_indices_copy indices_copy values_copy view_as_complex_copy
  view_as_real_copy: tensors are dense and real, with strides that are not chosen
matrix_exp = lt.linalg.matrix_exp(A)
*_copy = x:%1(...):clone()
unsafe_chunk = x:chunk(n, dim)
unsafe_split unsafe_split_with_sizes split_with_sizes = x:split(sizes, dim)
detach_ = x = x:detach()
dequantize quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm
  quantized_max_pool1d quantized_max_pool2d fake_quantize_per_channel_affine
  fake_quantize_per_tensor_affine int_repr q_per_channel_axis q_per_channel_scales
  q_per_channel_zero_points q_scale q_zero_point is_quantized: there are no quantized tensors
is_inference: there is no inference mode beside lt.no_grad
hash_tensor = lt.hash(x)
expit = lt.sigmoid(x)
gammaln = lt.lgamma(x)
gammainc = lt.igamma(a, x)
gammaincc = lt.igammac(a, x)
multigammaln = lt.mvlgamma(x, p)
modified_bessel_i0 = lt.i0(x)
modified_bessel_i1 = lt.i1(x)
*_polynomial_* = lt.special.chebyshev_polynomial_t(x, n) and its like
]]

texts.lt = [[
*_ = x:%1_(), a method
dtype: a dtype is a text, "f32"
alpha_dropout_ = lt.nn.Dropout(p)
*Storage *TypedStorage UntypedStorage is_storage typename: a tensor's memory is no object of its
  own; x:tobytes() and lt.save read it
*Tensor = lt.tensor(list, {dtype = "f32"})
asarray frombuffer = lt.tensor(list)
from_file = lt.numpy.memmap(path)
compile: every operation is compiled already; nothing is traced
broadcast_tensors = a:expand(shape), with the shape of a + b
row_stack = lt.vstack{a, b}
result_type promote_types can_cast = (a + b).dtype
finfo iinfo: limits of a dtype are no values here: f32 ends at 3.4e38, f16 at 65504
empty_permuted empty_strided = lt.empty(size):permute(dims)
bartlett_window = lt.signal.windows.bartlett(n, {sym = false})
blackman_window = lt.signal.windows.blackman(n, {sym = false})
kaiser_window = lt.signal.windows.kaiser(n, {sym = false})
conv_tbc = lt.conv1d(x, weight), of [N, C, T]
native_channel_shuffle = lt.channel_shuffle(x, groups)
rrelu_ = lt.nn.functional.leaky_relu(x, slope)
feature_alpha_dropout_ feature_dropout_ = lt.nn.Dropout2d(p)
initial_seed thread_safe_generator Generator = lt.seed(n)
get_rng_state set_rng_state = lt.seed(n): a checkpoint of the Trainer has the state of random
  numbers
get_default_dtype set_default_dtype set_default_tensor_type: the default dtype is f32; x:to "f64"
  and {dtype = "f64"} are for others
get_default_device set_default_device get_device_module = {device = "cuda"}, or net:to "cuda"
is_inference_mode_enabled = lt.no_grad
get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads init_num_threads =
  LT_NUM_THREADS=8 in the environment
use_deterministic_algorithms are_deterministic_algorithms_enabled
  is_deterministic_algorithms_warn_only_enabled get_deterministic_debug_mode
  set_deterministic_debug_mode: results are the same each time already
set_printoptions = ("%g"):format(x:item())
set_warn_always is_warn_always_enabled set_flush_denormal: there is nothing to set: a warning is
  said once
sparse_* lobpcg layout memory_format qscheme: tensors are dense and strided
sym_* Sym* vmap_* cond fork wait Future: nothing is traced: write Lua's own if, for and coroutines
Stream Event = lt.cuda.Stream() or lt.cuda.Event()
OutOfMemoryError AcceleratorError FatalError: errors are texts: pcall(f) and message:find "out of
  memory"
ModuleDict BufferDict ParameterDict = lt.nn.ModuleDict or lt.nn.ParameterDict
Script* *Type Graph* Block Node Value Use Code Gradient CallStack Capsule Argument* AggregationType
  AliasDb Benchmark* Throughput* ExecutionPlan CompilationUnit CompleteArgumentSpec
  ConcreteModuleType* DeepCopyMemoTable *StorageContext Disable* Dispatch* ErrorReport Exclude*
  FileCheck FunctionSchema IODescriptor JITException LiteScriptModule LockingLogger NoopLogger
  OperatorInfo PyTorchFile* StaticModule Tag TracingState Type import_ir_module*
  merge_type_from_type_comment parse_* unify_type_list: there is no TorchScript; a model is its Lua
  script, and net:to_onnx(path, x) exports it
]]

texts.tensor = [[
data = x:detach()
grad_dtype = x.grad.dtype
name: a tensor has no name
grad_fn output_nr = x.requires_grad, or print(x), which names it
retains_grad = x:retain_grad()
indices values = local values, indices = x:max(dim)
register_post_accumulate_grad_hook = x:register_hook(f), which is called before
reinforce volatile: PyTorch itself no longer has it
H mH mT T = x:t(), or x:transpose(-2, -1)
append concat = lt.cat({a, b}, dim)
astype = x:to "i64"
copy = x:clone()
element_size itemsize = #x:tobytes() // x:numel()
nbytes = #x:tobytes()
len = #x
map map_ map2 map2_ apply apply_ = the operation on the whole tensor, as x:exp()
ndimension = x.ndim
nelement = x:numel()
numpy = x:tolist(), or lt.numpy.save(path, x)
plot = lt.plot(x)
type = x:to "i64", or x.dtype
type_as = x:to(y.dtype)
get_device = x.device
is_cpu = x.device == "cpu"
is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_vulkan is_xla is_xpu ipu mtia xpu: devices are
  "cpu" and "cuda"; x.device names that of x
is_sparse is_sparse_csr is_coalesced coalesce col_indices crow_indices ccol_indices row_indices
  indices values dense_dim sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_
  resize_as_sparse_ to_dense to_sparse* to_mkldnn to_padded_tensor is_nested: tensors are dense
cdouble cfloat chalf: tensors have no complex dtype
data_ptr const_data_ptr storage storage_offset storage_type untyped_storage set_ is_set_to
  share_memory_ is_shared record_stream module_load as_subclass is_distributed dim_order layout
  qscheme: a tensor's memory is not open to scripts; x:tobytes() reads it
index = x[index]
is_same_size = lt.equal(x, y) after comparing #x.shape, or compare the shapes
is_signed = x.dtype ~= "u8"
new new_tensor = lt.tensor(list, {dtype = x.dtype, device = x.device})
new_empty = lt.empty(size, {dtype = x.dtype, device = x.device})
new_empty_strided = lt.empty(size, {dtype = x.dtype, device = x.device})
new_full = lt.full(size, value, {dtype = x.dtype, device = x.device})
new_ones = lt.ones(size, {dtype = x.dtype, device = x.device})
new_zeros = lt.zeros(size, {dtype = x.dtype, device = x.device})
repeat = x:tile(times): `repeat` is a word of Lua
reshape_as = x:reshape(y.shape)
resize resize_ resize_as resize_as_ = x:reshape(size), or a new tensor: sizes do not change
sum_to_size = x:sum(dims, true)
bernoulli_ = x:copy_(lt.full(x.shape, p):bernoulli())
random_ = x:copy_(lt.randint(low, high, x.shape))
exponential_ cauchy_ geometric_ log_normal_ =
  x:copy_(lt.distributions.Exponential(rate):sample(x.shape))
fill_diagonal_ = x:diagonal():fill_(value)
dist = (x - y):norm()
istft = lt.istft(x, n_fft)
stft = lt.stft(x, n_fft)
slice_inverse: this belongs to PyTorch's compiler
*_ = x = x:%1(...)
]]

texts.nn = [[
AdaptiveLogSoftmaxWithLoss = lt.nn.CrossEntropyLoss over all classes
Buffer = self:register_buffer(name, x)
Container = lt.nn.Sequential or lt.nn.ModuleList
CosineSimilarity = lt.cosine_similarity(a, b, dim)
CrossMapLRN2d = lt.nn.LocalResponseNorm(size)
DataParallel = lt.Trainer{devices = 2}
FractionalMaxPool2d FractionalMaxPool3d = lt.nn.AdaptiveMaxPool2d(output_size)
Lazy* Uninitialized*: sizes are given when a layer is made
LinearCrossEntropyLoss LinearCrossEntropyOptions = lt.nn.Linear and lt.nn.CrossEntropyLoss
NLLLoss2d = lt.nn.NLLLoss(), which takes [N, C, H, W] too
RNNBase RNNCellBase = lt.nn.RNN, lt.nn.LSTM or lt.nn.GRU
Softmax2d = lt.nn.Softmax(2)
factory_kwargs: a layer is made in f32 on the cpu; net:to{device = "cuda", dtype = "f64"} moves it
]]

texts["nn.functional"] = [[
adaptive_max_pool1d_with_indices = lt.nn.functional.adaptive_max_pool1d(x, size, {return_indices =
  true})
adaptive_max_pool2d_with_indices = lt.nn.functional.adaptive_max_pool2d(x, size, {return_indices =
  true})
adaptive_max_pool3d_with_indices = lt.nn.functional.adaptive_max_pool3d(x, size, {return_indices =
  true})
max_pool1d_with_indices = lt.nn.functional.max_pool1d(x, size, {return_indices = true})
max_pool2d_with_indices = lt.nn.functional.max_pool2d(x, size, {return_indices = true})
max_pool3d_with_indices = lt.nn.functional.max_pool3d(x, size, {return_indices = true})
fractional_max_pool* = lt.nn.functional.adaptive_max_pool2d(x, size)
rrelu_ = lt.nn.functional.leaky_relu(x, slope)
linear_cross_entropy = lt.nn.functional.cross_entropy(x:linear(weight), target)
multi_head_attention_forward = lt.nn.functional.scaled_dot_product_attention(q, k, v)
upsample upsample_bilinear upsample_nearest = lt.nn.functional.interpolate(x, {size = size})
conv_tbc = lt.conv1d(x, weight), of [N, C, T]
native_channel_shuffle = lt.channel_shuffle(x, groups)
ScalingType SwizzleType grouped_mm scaled_mm scaled_grouped_mm scaled_addmm scaled_addmm_: matrix
  products take f32, f64, f16 and bf16
assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function*: this is PyTorch's own
Tensor = lt.tensor(list)
*_ = the layer with {inplace = true}, or lt.nn.functional.%1
]]

texts["nn.init"] = [[
sparse sparse_ = w:copy_(w:bernoulli()), or lt.nn.init.normal_ and w:masked_fill_(mask, 0)
constant dirac eye kaiming_normal kaiming_uniform normal orthogonal uniform xavier_normal
  xavier_uniform: these names end in _, as lt.nn.init.constant_
]]

texts["nn.utils"] = [[
clip_grad_norm = lt.nn.utils.clip_grad_norm_
convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format: weights have one memory
  format
fuse_conv_bn_weights = lt.nn.utils.fuse_conv_bn_eval(conv, bn)
fuse_linear_bn_weights = lt.nn.utils.fuse_linear_bn_eval(linear, bn)
orthogonal = lt.nn.utils.parametrizations.orthogonal(module)
remove_spectral_norm remove_weight_norm = lt.nn.utils.remove_parametrizations(module, 'weight')
skip_init: layers are initialized when they are made
stateless = lt.func.functional_call
]]

texts["nn.utils.rnn"] = [[
pack_padded_sequence = y, state = layer(x, state, {lengths = n}): there are no packed sequences
pack_sequence = x, n = lt.data.pad_sequence(list), then layer(x, state, {lengths = n})
pad_sequence = lt.data.pad_sequence(list)
unpad_sequence = lt.data.unpad_sequence(x, lengths)
pad_packed_sequence: y = layer(x, state, {lengths = n}) is padded already
PackedSequence invert_permutation unpack_sequence: layers take padded sequences, by {lengths = n}
]]

texts["nn.utils.parametrize"] = [[
ParametrizationList = lt.nn.utils.register_parametrization, which makes it
transfer_parametrizations_and_params = to:load_state_dict(from:state_dict())
]]

texts["nn.utils.prune"] = [[
PruningContainer = a second call: it prunes what is left
]]

texts.Module = [[
get_extra_state set_extra_state: a class may have this method, which state_dict or load_state_dict
  calls
compile: every operation is compiled already
ipu mtia xpu: devices are "cpu" and "cuda": net:to "cuda"
register_backward_hook = net:register_full_backward_hook(hook)
share_memory: processes share no tensors: lt.Trainer{devices = 2} has one module in each
to_empty = net:to "cuda"
]]

texts.optim = [[
SparseAdam = lt.optim.Adam: gradients are dense
swap_in_optimizer_params_and_state = optimizer:load_state_dict(state)
get_ema_multi_avg_fn get_swa_avg_fn get_swa_multi_avg_fn = lt.optim.AveragedModel(net, {avg_fn = f})
]]

texts.Optimizer = [[
OptimizerPostHook OptimizerPreHook profile_hook_step: these are PyTorch's own
register_*: an optimizer has no hooks: override its method in a subclass, or write a callback's
  on_before_optimizer_step
]]

texts.distributions = [[
Cauchy HalfCauchy Chi2 FisherSnedecor GeneralizedPareto HalfNormal InverseGamma Kumaraswamy Pareto
  LogisticNormal = lt.distributions.TransformedDistribution of one that is here, with its transforms
ContinuousBernoulli RelaxedBernoulli RelaxedOneHotCategorical LKJCholesky VonMises Wishart
  OneHotCategoricalStraightThrough ExponentialFamily: this distribution is not here; a subclass of
  lt.distributions.Distribution has its log_prob and sample
Multinomial = lt.distributions.OneHotCategorical(probs):sample({n}):sum(1)
AbsTransform CatTransform CorrCholeskyTransform CumulativeDistributionTransform IndependentTransform
  LowerCholeskyTransform PositiveDefiniteTransform PowerTransform ReshapeTransform SoftmaxTransform
  SoftplusTransform StackTransform StickBreakingTransform = a subclass of lt.distributions.Transform
biject_to transform_to identity_transform: constraints name no transforms: x:exp(), x:sigmoid() and
  the like do it
register_kl = a method _kl of the distribution's class
]]

texts.Distribution = [[
batch_shape event_shape mean mode stddev variance: an object has this field, not the class
enumerate_support = lt.arange(n)
perplexity = d:entropy():exp()
sample_n = d:sample{n}
]]

texts.linalg = [[
LinAlgError: errors are texts: pcall(lt.linalg.inv, A)
eig eigvals: matrices that are not symmetric have complex eigenvalues; lt.linalg.eigh is for
  symmetric ones
ldl_factor ldl_factor_ex ldl_solve = lt.linalg.lu_factor, or lt.linalg.cholesky of a
  positive-definite matrix
matmul = lt.matmul(A, B)
]]

texts.fft = [[
Tensor = lt.tensor(list)
]]

texts.autograd = [[
NestedIOFunction = lt.autograd.Function
Variable variable = lt.tensor: tensors have gradients themselves
enforce_grad_layout_policy set_multithreading_enabled: there is nothing to set
forward_ad = lt.func.jvp, by two backwards: there is no forward mode
graph = x:register_hook(f), or lt.nn.utils.checkpoint(f, ...) to keep less memory
inference_mode = lt.no_grad
jacobian = lt.autograd.functional.jacobian
hessian = lt.autograd.functional.hessian
profiler = lt.Trainer{profiler = 'simple'}
set_detect_anomaly = lt.detect_anomaly
]]

texts["autograd.functional"] = [[
functional_call = lt.func.functional_call
grad = lt.grad
jacfwd = lt.func.jacfwd
jacrev = lt.func.jacrev
vmap = lt.vmap
]]

texts.func = [[
debug_unwrap: nothing is wrapped
functionalize = the function as it is: operations in place are differentiated
hvp = lt.autograd.functional.hvp
jacobian = lt.func.jacrev
linearize = lt.func.jvp at each vector
rearrange = x:reshape(sizes):permute(dims)
replace_all_batch_norm_modules_ = net:eval(), or track_running_stats = false
vhp = lt.autograd.functional.vhp
]]

texts.data = [[
ChainDataset = lt.data.ConcatDataset
IterDataPipe MapDataPipe DFIterDataPipe DataChunk functional_datapipe
  guaranteed_datapipes_determinism non_deterministic argument_validation runtime_validation
  runtime_validation_disabled = a class below lt.data.Dataset or lt.data.IterableDataset
Sampler SequentialSampler = a list of positions, or an object with a method each epoch's positions
  come from, as lt.data.RandomSampler
default_collate default_convert = lt.data.collate(samples)
]]

texts.metrics = [[
BaseAggregator dim_zero_cat rank_zero_warn Tensor: this is torchmetrics' own; lt.Metric is the base
  class
F1Score BinaryF1Score MulticlassF1Score MultilabelF1Score = lt.metrics.F1
CatMetric = lt.metrics.Cat()
MaxMetric = lt.metrics.Max()
MeanMetric = lt.metrics.Mean()
MinMetric = lt.metrics.Min()
SumMetric = lt.metrics.Sum()
BinaryFairness BinaryGroupStatRates = a lt.metrics.StatScores for each group
BinaryTargetTransformer LambdaInputTransformer MetricInputTransformer = metric:update(f(scores),
  labels)
BootStrapper FeatureShare MultioutputWrapper MultitaskWrapper PermutationInvariantTraining = several
  metrics in a lt.metrics.MetricCollection
NormalizedRootMeanSquaredError RootMeanSquaredErrorUsingSlidingWindow =
  lt.metrics.MeanSquaredError{squared = false}
CriticalSuccessIndex = lt.metrics.JaccardIndex
MeanIoU = lt.metrics.JaccardIndex{num_classes = n}
GeneralizedDiceScore = lt.metrics.DiceScore{num_classes = n}
SacreBLEUScore = lt.metrics.BLEUScore, of tokens
KendallRankCorrCoef = lt.metrics.SpearmanCorrCoef
NegativePredictiveValue BinaryNegativePredictiveValue MulticlassNegativePredictiveValue
  MultilabelNegativePredictiveValue = lt.metrics.StatScores, then tn / (tn + fn)
PrecisionAtFixedRecall RecallAtFixedPrecision SensitivityAtSpecificity SpecificityAtSensitivity
  BinaryPrecisionAtFixedRecall BinaryRecallAtFixedPrecision BinarySensitivityAtSpecificity
  BinarySpecificityAtSensitivity MulticlassPrecisionAtFixedRecall MulticlassRecallAtFixedPrecision
  MulticlassSensitivityAtSpecificity MulticlassSpecificityAtSensitivity
  MultilabelPrecisionAtFixedRecall MultilabelRecallAtFixedPrecision
  MultilabelSensitivityAtSpecificity MultilabelSpecificityAtSensitivity =
  lt.metrics.PrecisionRecallCurve or lt.metrics.ROC, and the point on it
EER LogAUC BinaryEER BinaryLogAUC MulticlassEER MulticlassLogAUC MultilabelEER MultilabelLogAUC =
  lt.metrics.ROC, and the point on it
MultilabelCoverageError MultilabelRankingAveragePrecision MultilabelRankingLoss HingeLoss
  BinaryHingeLoss MulticlassHingeLoss: this metric is not here; a subclass of lt.Metric with update
  and compute is a few lines
Binary* Multiclass* Multilabel* = lt.metrics.%1, with num_classes or num_labels, binary without them
Retrieval* = lt.metrics.RetrievalMAP, lt.metrics.RetrievalMRR or lt.metrics.RetrievalNormalizedDCG
CHRFScore ExtendedEditDistance SQuAD TranslationEditRate KLDivergence JensenShannonDivergence
  TweedieDevianceScore ContinuousRankedProbabilityScore HausdorffDistance IntersectionOverUnion
  CompleteIntersectionOverUnion DistanceIntersectionOverUnion GeneralizedIntersectionOverUnion
  PanopticQuality ModifiedPanopticQuality CramersV FleissKappa PearsonsContingencyCoefficient
  TheilsU TschuprowsT AdjustedMutualInfoScore AdjustedRandScore CalinskiHarabaszScore
  CompletenessScore DaviesBouldinScore FowlkesMallowsIndex HomogeneityScore MutualInfoScore
  NormalizedMutualInfoScore RandScore DunnIndex UniversalImageQualityIndex SpatialDistortionIndex
  SpectralDistortionIndex ClusterAccuracy SignalDistortionRatio SignalNoiseRatio
  ScaleInvariantSignalDistortionRatio ScaleInvariantSignalNoiseRatio
  DeepImageStructureAndTextureSimilarity LearnedPerceptualImagePatchSimilarity
  ErrorRelativeGlobalDimensionlessSynthesis MemorizationInformedFrechetInceptionDistance
  PeakSignalNoiseRatioWithBlockedEffect PerceptualPathLength QualityWithNoReference
  RelativeAverageSpectralError SpatialCorrelationCoefficient SpectralAngleMapper TotalVariation
  MultiScaleStructuralSimilarityIndexMeasure VisualInformationFidelity VMeasureScore: this metric is
  not here; a subclass of lt.Metric with update and compute is a few lines
]]

texts.Metric = [[
clone = lt.nn.deepcopy(metric)
device = metric:to(device); a metric follows its batch
merge_state = metric:merge(state)
metric_state = metric:state_dict()
sync unsync sync_context = metric:compute{sync = true}
update_called update_count = a state of the metric's own
persistent: a metric's state is saved with its module
*: a metric is no module: it has update, compute, reset, to, state_dict and load_state_dict
]]

-- A room's rows: { [name] = text }, and in order { pattern, text } of those with a `*`.
local function read(text)
  local rows = { patterns = {} }
  for line in text:gsub("\n  ", " "):gmatch "[^\n]+" do
    local names, mark, said = line:match "^([%w_* ]-) ?([=:]) (.+)$"
    if mark == "=" then said = "write " .. said end
    for name in names:gmatch "%S+" do
      if name:find("*", 1, true) then
        rows.patterns[#rows.patterns + 1] = { "^" .. name:gsub("%*", "([%%w_]*)") .. "$", said }
      else
        rows[name] = said
      end
    end
  end
  return rows
end

local rooms = setmetatable({}, { __index = function(self, room)
  self[room] = read(texts[room] or "")
  return self[room]
end })

-- What the patterns of a room say; those with %1 only where that is a name that is there.
local function by_pattern(room, name, is_known)
  for _, row in ipairs(rooms[room].patterns) do
    local found = name:match(row[1])
    if found and (not row[2]:find("%1", 1, true) or is_known(found)) then
      return (row[2]:gsub("%%1", found))
    end
  end
end

--- "write x:abs()", or why there is nothing, for a name that a room lacks; nil: it is not known.
--- `words`: what the room has, of "tensor" the methods if nil.
function torch_names.of(room, name, words)
  local both = (room == "lt" or room == "tensor" or room == "nn.functional") and "both" or room
  local function is_known(found)
    for _, word in ipairs(words or {}) do
      if word == found then return true end
    end
    return not words and c.runtime.methods[found] ~= nil
  end
  local function among(one)
    return rooms[room][one] or rooms[both][one] or by_pattern(room, one, is_known)
      or by_pattern(both, one, is_known)
  end
  return among(name) or name:sub(-1) == "_" and among(name:sub(1, -2)) or nil
end

return torch_names
