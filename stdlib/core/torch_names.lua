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
-- have; internals and what few scripts have a use for are listed in spec/api/internal_names.lua.
local texts = {}

-- Names of torch and methods of tensors.
texts.both = [[
absolute = x:abs()
arc* = x:a%1()
arctan2 = x:atan2(y)
clip clamp_max clamp_min = x:clamp(min, max)
divide multiply subtract true_divide = x / y, x * y or x - y
negative = -x
greater less greater_equal less_equal not_equal = x:gt(y), x:lt(y), x:ge(y), x:le(y) or x:ne(y)
moveaxis = x:movedim(from, to)
swapaxes swapdims = x:transpose(a, b)
range = lt.arange(start, stop + step, step)
normal = lt.randn(size) * std + mean
cholesky cross det lstsq matrix_power qr slogdet solve svd vander = lt.linalg.%0(x, ...)
inverse = lt.linalg.inv(x)
eig symeig: lt.linalg.eigh is for symmetric matrices; there is no decomposition of others
is_floating_point = x.dtype:find "f" ~= nil
is_complex isreal real imag conj angle polar complex view_as_complex view_as_real: tensors have no
  complex dtype; the transforms of lt.fft return their parts in a last dim of size 2
as_strided*: a tensor's strides are not chosen; unfold, diagonal and expand are views
*quantize* q_* int_repr: there are no quantized tensors
inference_mode = lt.no_grad
expit = lt.sigmoid(x)
*sparse* coalesce to_dense to_mkldnn layout memory_format: tensors are dense
]]

texts.lt = [[
*_ = x:%1_(), a method
float float32 = "f32": a dtype is a text
double float64 = "f64": a dtype is a text
half float16 = "f16": a dtype is a text
bfloat16 = "bf16": a dtype is a text
long int64 = "i64": a dtype is a text
dtype int int32 uint8 bool: a dtype is a text: "i32", "u8", "bool"
*Tensor = lt.tensor(list, {dtype = "f32"})
array as_tensor asarray frombuffer = lt.tensor(list)
from_numpy from_file = lt.numpy.load(path) or lt.numpy.memmap(path)
Parameter = lt.parameter(x)
Size = x.shape, a table
Generator initial_seed manual_seed get_rng_state set_rng_state = lt.seed(n)
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
concat concatenate = lt.cat
newaxis = lt.new in an index, or x:unsqueeze(dim)
pi inf nan = math.pi, math.huge or 0/0
result_type promote_types can_cast = (a + b).dtype
finfo iinfo: limits of a dtype are no values here: f32 ends at 3.4e38, f16 at 65504
get_default_* set_default_*: the default dtype is f32; x:to "f64" and {dtype = "f64"} are for
  others, net:to "cuda" and {device = "cuda"} for devices
*_num_threads *_num_interop_threads = LT_NUM_THREADS=8 in the environment
*deterministic_algorithms* *deterministic_debug_mode: results are the same each time already
set_printoptions = ("%g"):format(x:item())
Stream Event = lt.cuda.Stream() or lt.cuda.Event()
OutOfMemoryError *Error: errors are texts: pcall(f) and message:find "out of memory"
]]

texts.tensor = [[
data = x:detach()
name: a tensor has no name
grad_fn = x.requires_grad, or print(x), which names it
indices values = local values, indices = x:max(dim)
H mH mT T = x:t(), or x:transpose(-2, -1)
append concat = lt.cat({a, b}, dim)
astype type type_as = x:to "i64"
copy = x:clone()
len = #x
map* apply* = the operation on the whole tensor, as x:exp()
ndimension nelement = x.ndim or x:numel()
nbytes element_size itemsize = #x:tobytes()
numpy = x:tolist(), or lt.numpy.save(path, x)
plot = lt.plot(x)
get_device is_cpu is_mps is_xla is_xpu mtia xpu = x.device: "cpu" or "cuda"
*data_ptr *storage* set_ share_memory_ record_stream: a tensor's memory is not open to scripts;
  x:tobytes() reads it
index = x[index]
is_signed = x.dtype ~= "u8"
new new_* = lt.zeros(size, {dtype = x.dtype, device = x.device})
repeat = x:tile(times): `repeat` is a word of Lua
reshape_as = x:reshape(y.shape)
resize* = x:reshape(size), or a new tensor: sizes do not change
bernoulli_ random_ exponential_ geometric_ log_normal_ = x:copy_(lt.rand(x.shape)), or a sample of
  lt.distributions
fill_diagonal_ = x:diagonal():fill_(value)
dist = (x - y):norm()
istft stft = lt.%0(x, n_fft)
*_ = x = x:%1(...)
]]

texts.nn = [[
Parameter = lt.parameter(x)
Buffer = self:register_buffer(name, x)
Container = lt.nn.Sequential or lt.nn.ModuleList
CosineSimilarity = lt.cosine_similarity(a, b, dim)
DataParallel = lt.Trainer{devices = 2}, or with strategy = 'dp' in one process
Lazy* Uninitialized*: sizes are given when a layer is made
NLLLoss2d = lt.nn.NLLLoss(), which takes [N, C, H, W] too
RNNBase RNNCellBase = lt.nn.RNN, lt.nn.LSTM or lt.nn.GRU
Softmax2d = lt.nn.Softmax(2)
]]

texts["nn.functional"] = [[
*_with_indices = lt.nn.functional.%1(..., {return_indices = true})
multi_head_attention_forward = lt.nn.functional.scaled_dot_product_attention(q, k, v)
upsample* = lt.nn.functional.interpolate(x, {size = size})
*_ = the layer with {inplace = true}, or lt.nn.functional.%1
]]

texts["nn.init"] = [[
constant eye kaiming_normal kaiming_uniform normal orthogonal uniform xavier_normal xavier_uniform:
  these names end in _, as lt.nn.init.constant_
]]

texts["nn.utils"] = [[
clip_grad_norm = lt.nn.utils.clip_grad_norm_
fuse_*_weights = lt.nn.utils.fuse_conv_bn_eval(conv, bn) or fuse_linear_bn_eval(linear, bn)
orthogonal = lt.nn.utils.parametrizations.orthogonal(module)
remove_spectral_norm remove_weight_norm = lt.nn.utils.remove_parametrizations(module, 'weight')
stateless = lt.func.functional_call
]]

texts["nn.utils.rnn"] = [[
pack_sequence = x, n = lt.data.pad_sequence(list), then layer(x, state, {lengths = n})
pad_sequence unpad_sequence = lt.data.%0
*pack* *Pack* = y, state = layer(x, state, {lengths = n}): there are no packed sequences
]]

texts.optim = [[
lr_scheduler = lt.optim.StepLR and its like: schedulers are in lt.optim
clip_grad_norm clip_grad_norm_ = lt.nn.clip_grad_norm_
SparseAdam = lt.optim.Adam: gradients are dense
get_*avg_fn = lt.optim.AveragedModel(net, {avg_fn = f})
]]

texts.cuda = [[
amp = lt.autocast and lt.GradScaler
manual_seed manual_seed_all = lt.seed(n)
]]

texts.dist = [[
allreduce_async = lt.dist.all_reduce(x, {async = true}), or lt.horovod.%0
allreduce = lt.dist.all_reduce(x), or lt.horovod.%0
allgather all_gather_object all_gather_into_tensor gather_object = lt.dist.all_gather
broadcast_object broadcast_object_list broadcast_ = lt.dist.broadcast
alltoall all_to_all_single = lt.dist.all_to_all
reducescatter reduce_scatter_tensor = lt.dist.reduce_scatter
isend irecv = lt.dist.send and lt.dist.recv with the option async = true
batch_isend_irecv = lt.dist.batch
get_rank = lt.dist.rank()
size get_world_size = lt.dist.world_size()
local_size cross_rank cross_size get_backend is_initialized = lt.dist.world(), a table
new_group = lt.dist.split(color)
DeviceMesh init_device_mesh device_mesh = lt.dist.mesh({2, 4}, {"data", "tensor"})
init init_process_group shutdown destroy_process_group: ranks are joined where the script begins
Average Sum Adasum Compression = lt.horovod.%0
]]

texts.json = [[
loads parse = lt.json.decode
dumps = lt.json.encode
]]

texts.distributions = [[
*Transform = a subclass of lt.distributions.Transform
register_kl = a method _kl of the distribution's class
?: a subclass of lt.distributions.Distribution has log_prob and sample, or it is a
  lt.distributions.TransformedDistribution of another
]]

texts.linalg = [[
inverse = lt.linalg.inv
LinAlgError: errors are texts: pcall(lt.linalg.inv, A)
eig eigvals: lt.linalg.eigh is for symmetric matrices; there is no decomposition of others
matmul = lt.matmul(A, B)
]]

texts.autograd = [[
Variable variable = lt.tensor: tensors have gradients themselves
graph = x:register_hook(f), or lt.nn.utils.checkpoint(f, ...) to keep less memory
forward_ad = lt.func.jvp, by two backwards: there is no forward mode
inference_mode = lt.no_grad
jacobian hessian = lt.autograd.functional.%0
profiler = lt.Trainer{profiler = 'simple'}
set_detect_anomaly = lt.detect_anomaly
]]

texts["autograd.functional"] = [[
functional_call jacfwd jacrev = lt.func.%0
]]

texts.func = [[
functionalize = the function as it is: operations in place are differentiated
hvp vhp = lt.autograd.functional.%0
jacobian = lt.func.jacrev
linearize = lt.func.jvp at each vector
]]

texts.data = [[
ChainDataset = lt.data.ConcatDataset
Sampler SequentialSampler = a list of positions, or an object with a method each epoch's positions
  come from, as lt.data.RandomSampler
default_collate default_convert = lt.data.collate(samples)
]]

texts.metrics = [[
*F1Score = lt.metrics.F1
*Metric = lt.metrics.%1()
*Wrapper BootStrapper = several metrics in a lt.metrics.MetricCollection
MeanIoU = lt.metrics.JaccardIndex
GeneralizedDiceScore = lt.metrics.DiceScore{num_classes = n}
SacreBLEUScore = lt.metrics.BLEUScore, of tokens
*AtFixedRecall *AtFixedPrecision *AtSpecificity *AtSensitivity = lt.metrics.ROC or
  lt.metrics.PrecisionRecallCurve, and the point on it
Binary* Multiclass* Multilabel* = lt.metrics.%1, with num_classes or num_labels, binary without them
Retrieval* = lt.metrics.RetrievalMAP, lt.metrics.RetrievalMRR or lt.metrics.RetrievalNormalizedDCG
?: this metric is not here; a subclass of lt.Metric with update and compute is a few lines
]]

return texts
