-- stdlib/core/torch_names.lua: public names of PyTorch and torchmetrics that are not here, by
-- namespace, and what to write in place of them, or why there is nothing.
--
--   absolute = x:abs()                            what to write
--   det inv = lt.linalg.%0(x)                     %0: the name
--   *_ = x = x:%1(...)                            `*` stands for any letters, %1 for what they are
--   finfo: limits of a dtype are not values here   why there is nothing
--   ?: this metric is not here                    of all names that are near none that there are
--
-- core/foreign_names.lua reads it. spec/api/torch_spec.lua compares it with what these libraries
-- have: what no script has a use for is listed there.
local texts = {}

-- Names of torch and methods of tensors.
texts.both = [[
absolute = x:abs()
arc* = x:a%1()
arctan2 = x:atan2(y)
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
ger = x:outer(y)
trapz = lt.trapezoid(y, x)
range = lt.arange(start, stop + step, step)
logspace = lt.linspace(a, b, n):mul(math.log(base)):exp()
normal = lt.randn(size) * std + mean
poisson = lt.distributions.Poisson(rate):sample()
cholesky det matrix_power qr slogdet svd vander = lt.linalg.%0(x)
cross = lt.linalg.cross(x, y)
inverse = lt.linalg.inv(x)
lstsq solve = lt.linalg.%0(A, B)
symeig = lt.linalg.eigh(x)
eig: there is no eigenvalue decomposition of matrices that are not symmetric; lt.linalg.eigh has
  these
psi = x:digamma()
sgn = x:sign()
is_nonzero = x:item() ~= 0
is_floating_point = x.dtype:find "f" ~= nil
is_complex isreal is_conj is_neg real imag conj conj_physical resolve_conj resolve_neg angle polar
  complex view_as_complex view_as_real cdouble cfloat chalf: tensors have no complex dtype; the
  transforms of lt.fft return their parts in a last dim of size 2
adjoint = x:transpose(-2, -1)
as_strided*: a tensor's strides are not chosen; unfold, diagonal and expand are views
alias_copy detach_copy = x:detach():clone()
*_copy = x:%1(...):clone()
unsafe_chunk = x:chunk(n, dim)
unsafe_split* split_with_sizes* = x:split(sizes, dim)
detach_ = x = x:detach()
*quantize* q_* int_repr: there are no quantized tensors
is_inference* inference_mode = lt.no_grad
expit = lt.sigmoid(x)
conv_tbc = lt.conv1d(x, weight), of [N, C, T]
gammaln = lt.lgamma(x)
*_polynomial_* = lt.special.chebyshev_polynomial_t(x, n) and its like
*sparse* sspaddmm hspmm smm is_coalesced coalesce c*_indices row_indices dense_dim to_dense
  to_mkldnn to_padded_tensor is_nested lobpcg layout memory_format qscheme: tensors are dense
]]

texts.lt = [[
*_ = x:%1_(), a method
dtype: a dtype is a text, "f32"
float float32 = "f32": a dtype is a text
double float64 = "f64": a dtype is a text
half float16 = "f16": a dtype is a text
bfloat16 = "bf16": a dtype is a text
long int64 = "i64": a dtype is a text
int int32 = "i32": a dtype is a text
uint8 = "u8": a dtype is a text
bool = "bool": a dtype is a text
*Tensor = lt.tensor(list, {dtype = "f32"})
array as_tensor asarray frombuffer = lt.tensor(list)
from_file = lt.numpy.memmap(path)
from_numpy = lt.numpy.load(path)
Parameter = lt.parameter(x)
Size = x.shape, a table
Generator initial_seed manual_seed = lt.seed(n)
get_rng_state set_rng_state = lt.seed(n): a checkpoint of the Trainer has the state of random
  numbers
F functional = lt.nn.functional
functional_call = lt.func.functional_call
amp = lt.autocast and lt.GradScaler
backends = lt.set_float32_matmul_precision
distributed = lt.dist
fully_shard = lt.shard(module)
register_fsdp_forward_method = lt.register_forward_method(module, name)
hub = lt.models, with weights by lt.load
jit = net:to_onnx(path, x)
multiprocessing = lt.data.DataLoader(data, {num_workers = 4}), or lt.dist
profiler = lt.Trainer{profiler = 'simple'}
utils = lt.data, or lt.nn.utils
compile: every operation is compiled already; nothing is traced
set_detect_anomaly = lt.detect_anomaly
broadcast_tensors = a:expand(shape), with the shape of a + b
concat concatenate = lt.cat
row_stack = lt.vstack{a, b}
newaxis = lt.new in an index, or x:unsqueeze(dim)
pi = math.pi
inf = math.huge
nan = 0/0
print = print(x)
result_type promote_types can_cast = (a + b).dtype
finfo iinfo: limits of a dtype are no values here: f32 ends at 3.4e38, f16 at 65504
bartlett_window blackman_window kaiser_window = lt.signal.windows.bartlett(n, {sym = false})
get_default_dtype set_default_dtype set_default_tensor_type: the default dtype is f32; x:to "f64"
  and {dtype = "f64"} are for others
get_default_device set_default_device get_device_module = lt.device "cuda", {device = "cuda"}, or
  net:to "cuda"
get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads init_num_threads =
  LT_NUM_THREADS=8 in the environment
*deterministic_algorithms* *deterministic_debug_mode: results are the same each time already
set_printoptions = ("%g"):format(x:item())
Stream Event = lt.cuda.Stream() or lt.cuda.Event()
OutOfMemoryError AcceleratorError FatalError: errors are texts: pcall(f) and message:find "out of
  memory"
]]

texts.tensor = [[
data = x:detach()
name: a tensor has no name
grad_fn output_nr = x.requires_grad, or print(x), which names it
retains_grad = x:retain_grad()
indices values = local values, indices = x:max(dim)
H mH mT T = x:t(), or x:transpose(-2, -1)
append concat = lt.cat({a, b}, dim)
astype = x:to "i64"
copy = x:clone()
element_size itemsize = #x:tobytes() // x:numel()
nbytes = #x:tobytes()
len = #x
map* apply* = the operation on the whole tensor, as x:exp()
ndimension = x.ndim
nelement = x:numel()
numpy = x:tolist(), or lt.numpy.save(path, x)
plot = lt.plot(x)
type = x:to "i64", or x.dtype
type_as = x:to(y.dtype)
get_device = x.device
is_cpu = x.device == "cpu"
is_mps is_xla is_xpu mtia xpu: devices are "cpu" and "cuda"; x.device names that of x
*data_ptr *storage* set_ share_memory_ record_stream as_subclass dim_order: a tensor's memory is not
  open to scripts; x:tobytes() reads it
index = x[index]
is_same_size = lt.equal(x, y) after comparing #x.shape, or compare the shapes
is_signed = x.dtype ~= "u8"
new new_tensor = lt.tensor(list, {dtype = x.dtype, device = x.device})
new_empty* new_ones new_zeros = lt.zeros(size, {dtype = x.dtype, device = x.device})
new_full = lt.full(size, value, {dtype = x.dtype, device = x.device})
repeat = x:tile(times): `repeat` is a word of Lua
reshape_as = x:reshape(y.shape)
resize* = x:reshape(size), or a new tensor: sizes do not change
sum_to_size = x:sum(dims, true)
bernoulli_ = x:copy_(lt.full(x.shape, p):bernoulli())
random_ = x:copy_(lt.randint(low, high, x.shape))
exponential_ = x:copy_(lt.distributions.Exponential(rate):sample(x.shape))
geometric_ = x:copy_(lt.distributions.Geometric(p):sample(x.shape) + 1)
log_normal_ = x:copy_(lt.distributions.LogNormal(mean, std):sample(x.shape))
cauchy_ = x:copy_((lt.rand(x.shape) - 0.5):mul(math.pi):tan() * sigma + median)
fill_diagonal_ = x:diagonal():fill_(value)
dist = (x - y):norm()
istft stft = lt.%0(x, n_fft)
*_ = x = x:%1(...)
]]

texts.nn = [[
Parameter = lt.parameter(x)
AdaptiveLogSoftmaxWithLoss = lt.nn.CrossEntropyLoss over all classes
Buffer = self:register_buffer(name, x)
Container = lt.nn.Sequential or lt.nn.ModuleList
CosineSimilarity = lt.cosine_similarity(a, b, dim)
CrossMapLRN2d = lt.nn.LocalResponseNorm(size)
DataParallel = lt.Trainer{devices = 2}, or with strategy = 'dp' in one process
FractionalMaxPool* = lt.nn.AdaptiveMaxPool2d(output_size)
Lazy* Uninitialized*: sizes are given when a layer is made
LinearCrossEntropy* = lt.nn.Linear and lt.nn.CrossEntropyLoss
NLLLoss2d = lt.nn.NLLLoss(), which takes [N, C, H, W] too
RNNBase RNNCellBase = lt.nn.RNN, lt.nn.LSTM or lt.nn.GRU
Softmax2d = lt.nn.Softmax(2)
]]

texts["nn.functional"] = [[
*_with_indices = lt.nn.functional.%1(..., {return_indices = true})
fractional_max_pool* = lt.nn.functional.adaptive_max_pool2d(x, size)
rrelu_ = lt.nn.functional.leaky_relu(x, slope)
linear_cross_entropy = lt.nn.functional.cross_entropy(x:linear(weight), target)
multi_head_attention_forward = lt.nn.functional.scaled_dot_product_attention(q, k, v)
upsample upsample_bilinear upsample_nearest = lt.nn.functional.interpolate(x, {size = size})
*_ = the layer with {inplace = true}, or lt.nn.functional.%1
]]

texts["nn.init"] = [[
sparse sparse_ = lt.nn.init.normal_(w, 0, 0.01), then w:masked_fill_(lt.rand(w.shape):lt(p), 0)
constant dirac eye kaiming_normal kaiming_uniform normal orthogonal uniform xavier_normal
  xavier_uniform: these names end in _, as lt.nn.init.constant_
]]

texts["nn.utils"] = [[
clip_grad_norm = lt.nn.utils.clip_grad_norm_
convert_conv*_weight_memory_format: weights have one memory format
fuse_*_weights = lt.nn.utils.fuse_conv_bn_eval(conv, bn) or fuse_linear_bn_eval(linear, bn)
orthogonal = lt.nn.utils.parametrizations.orthogonal(module)
remove_spectral_norm remove_weight_norm = lt.nn.utils.remove_parametrizations(module, 'weight')
skip_init: layers are initialized when they are made
stateless = lt.func.functional_call
]]

texts["nn.utils.rnn"] = [[
pack_padded_sequence = y, state = layer(x, state, {lengths = n}): there are no packed sequences
pack_sequence = x, n = lt.data.pad_sequence(list), then layer(x, state, {lengths = n})
pad_sequence unpad_sequence = lt.data.%0
pad_packed_sequence: y = layer(x, state, {lengths = n}) is padded already
PackedSequence unpack_sequence: layers take padded sequences, by {lengths = n}
]]

texts["nn.utils.parametrize"] = [[
ParametrizationList = lt.nn.utils.register_parametrization, which makes it
transfer_parametrizations_and_params = to:load_state_dict(from:state_dict())
]]

texts["nn.utils.prune"] = [[
PruningContainer = a second call: it prunes what is left
]]

texts.optim = [[
lr_scheduler = lt.optim.StepLR and its like: schedulers are in lt.optim
clip_grad_norm clip_grad_norm_ = lt.nn.clip_grad_norm_
SparseAdam = lt.optim.Adam: gradients are dense
swap_in_optimizer_params_and_state = optimizer:load_state_dict(state)
get_*avg_fn = lt.optim.AveragedModel(net, {avg_fn = f})
]]

texts.cuda = [[
amp = lt.autocast and lt.GradScaler
manual_seed manual_seed_all = lt.seed(n)
]]

texts.json = [[
loads parse = lt.json.decode
dumps = lt.json.encode
]]

texts.distributions = [[
Multinomial = lt.distributions.OneHotCategorical(probs):sample({n}):sum(1)
*Transform = a subclass of lt.distributions.Transform
biject_to transform_to identity_transform: constraints name no transforms: x:exp(), x:sigmoid() and
  the like do it
register_kl = a method _kl of the distribution's class
?: a subclass of lt.distributions.Distribution has log_prob and sample, or it is a
  lt.distributions.TransformedDistribution of another
]]

texts.linalg = [[
inverse = lt.linalg.inv
LinAlgError: errors are texts: pcall(lt.linalg.inv, A)
eig eigvals: matrices that are not symmetric have complex eigenvalues; lt.linalg.eigh is for
  symmetric ones
ldl_* = lt.linalg.lu_factor, or lt.linalg.cholesky of a positive-definite matrix
matmul = lt.matmul(A, B)
]]

texts.autograd = [[
NestedIOFunction = lt.autograd.Function
Variable variable = lt.tensor: tensors have gradients themselves
forward_ad = lt.func.jvp, by two backwards: there is no forward mode
graph = x:register_hook(f), or lt.nn.utils.checkpoint(f, ...) to keep less memory
inference_mode = lt.no_grad
jacobian hessian = lt.autograd.functional.%0
profiler = lt.Trainer{profiler = 'simple'}
set_detect_anomaly = lt.detect_anomaly
]]

texts["autograd.functional"] = [[
functional_call jacfwd jacrev = lt.func.%0
grad vmap = lt.%0
]]

texts.func = [[
functionalize = the function as it is: operations in place are differentiated
hvp vhp = lt.autograd.functional.%0
jacobian = lt.func.jacrev
linearize = lt.func.jvp at each vector
replace_all_batch_norm_modules_ = net:eval(), or track_running_stats = false
]]

texts.data = [[
ChainDataset = lt.data.ConcatDataset
*DataPipe = a class below lt.data.Dataset or lt.data.IterableDataset
Sampler SequentialSampler = a list of positions, or an object with a method each epoch's positions
  come from, as lt.data.RandomSampler
default_collate default_convert = lt.data.collate(samples)
]]

texts.metrics = [[
*F1Score = lt.metrics.F1
*Metric = lt.metrics.%1()
BinaryFairness BinaryGroupStatRates = a lt.metrics.StatScores for each group
BootStrapper FeatureShare *Wrapper PermutationInvariantTraining = several metrics in a
  lt.metrics.MetricCollection
*InputTransformer *TargetTransformer = metric:update(f(scores), labels)
NormalizedRootMeanSquaredError RootMeanSquaredErrorUsingSlidingWindow =
  lt.metrics.MeanSquaredError{squared = false}
CriticalSuccessIndex MeanIoU = lt.metrics.JaccardIndex
GeneralizedDiceScore = lt.metrics.DiceScore{num_classes = n}
SacreBLEUScore = lt.metrics.BLEUScore, of tokens
KendallRankCorrCoef = lt.metrics.SpearmanCorrCoef
*NegativePredictiveValue = lt.metrics.StatScores, then tn / (tn + fn)
*AtFixedRecall *AtFixedPrecision *AtSpecificity *AtSensitivity *EER *LogAUC = lt.metrics.ROC or
  lt.metrics.PrecisionRecallCurve, and the point on it
Binary* Multiclass* Multilabel* = lt.metrics.%1, with num_classes or num_labels, binary without them
Retrieval* = lt.metrics.RetrievalMAP, lt.metrics.RetrievalMRR or lt.metrics.RetrievalNormalizedDCG
?: this metric is not here; a subclass of lt.Metric with update and compute is a few lines
]]

return texts
