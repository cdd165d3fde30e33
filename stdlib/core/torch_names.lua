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
-- have; what few scripts have a use for is listed in spec/api/internal_names.lua.
local texts = {}

-- Names of torch and methods of tensors.
texts.both = [[
absolute = x:abs()
arc* = x:a%1()
clip clamp_max clamp_min = x:clamp(min, max)
divide multiply subtract true_divide = x / y, x * y or x - y
negative = -x
is_floating_point = x.dtype:find "f" ~= nil
greater less greater_equal less_equal not_equal = x:gt(y), x:lt(y), x:ge(y), x:le(y) or x:ne(y)
moveaxis = x:movedim(from, to)
swapaxes swapdims = x:transpose(a, b)
range = lt.arange(start, stop + step, step)
normal = lt.randn(size) * std + mean
cholesky cross det inverse lstsq matrix_power qr slogdet solve svd vander: it is in lt.linalg
is_complex isreal real imag conj angle polar complex view_as_complex view_as_real: tensors have no
  complex dtype; the transforms of lt.fft return their parts in a last dim of size 2
*quantize* *sparse* to_dense layout memory_format: tensors are dense
inference_mode = lt.no_grad
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
finfo iinfo: limits of a dtype are not values here: f32 ends at 3.4e38, f16 at 65504
Generator initial_seed manual_seed get_rng_state set_rng_state = lt.seed(n)
F functional = lt.nn.functional
functional_call = lt.func.functional_call
amp = lt.autocast and lt.GradScaler
distributed = lt.dist
jit = net:to_onnx(path, x)
utils = lt.data, or lt.nn.utils
compile: every operation is compiled already; nothing is traced
set_detect_anomaly = lt.detect_anomaly
concat concatenate = lt.cat
newaxis = lt.new in an index, or x:unsqueeze(dim)
pi inf nan = math.pi, math.huge or 0/0
get_default_* set_default_*: the default dtype is f32; x:to "f64" and {dtype = "f64"} are for
  others, net:to "cuda" and {device = "cuda"} for devices
*_num_threads *_num_interop_threads = LT_NUM_THREADS=8 in the environment
use_deterministic_algorithms: results are the same each time already
Stream Event = lt.cuda.Stream() or lt.cuda.Event()
OutOfMemoryError *Error: errors are texts: pcall(f) and message:find "out of memory"
]]

texts.tensor = [[
data = x:detach()
H mH mT T = x:t(), or x:transpose(-2, -1)
astype type type_as = x:to "i64"
copy = x:clone()
len = #x
ndimension nelement = x.ndim or x:numel()
numpy = x:tolist(), or lt.numpy.save(path, x)
get_device is_cpu is_mps is_xla is_xpu mtia xpu = x.device: "cpu" or "cuda"
new new_* = lt.zeros(size, {dtype = x.dtype, device = x.device})
repeat = x:tile(times): `repeat` is a word of Lua
reshape_as = x:reshape(y.shape)
resize* = x:reshape(size), or a new tensor: sizes do not change
*_ = x = x:%1(...)
]]

texts.nn = [[
Parameter = lt.parameter(x)
Buffer = self:register_buffer(name, x)
CosineSimilarity = lt.cosine_similarity(a, b, dim)
DataParallel = lt.Trainer{devices = 2}, or with strategy = 'dp' in one process
Lazy* Uninitialized*: sizes are given when a layer is made
]]

texts["nn.functional"] = [[
*_with_indices = lt.nn.functional.%1(..., {return_indices = true})
upsample* = lt.nn.functional.interpolate(x, {size = size})
*_ = the layer with {inplace = true}, or lt.nn.functional.%1
]]

texts["nn.init"] = [[
constant eye kaiming_normal kaiming_uniform normal orthogonal uniform xavier_normal xavier_uniform:
  these names end in _, as lt.nn.init.constant_
]]

texts["nn.utils.rnn"] = [[
pad_sequence unpad_sequence = lt.data.%0
*pack* *Pack* = y, state = layer(x, state, {lengths = n}): there are no packed sequences
]]

texts.optim = [[
lr_scheduler = lt.optim.StepLR and its like: schedulers are in lt.optim
clip_grad_norm clip_grad_norm_ = lt.nn.clip_grad_norm_
SparseAdam = lt.optim.Adam: gradients are dense
]]

texts.dist = [[
allreduce_async allreduce allgather reducescatter broadcast_ Average Sum Adasum = lt.horovod.%0
all_gather_object all_gather_into_tensor gather_object = lt.dist.all_gather
broadcast_object broadcast_object_list = lt.dist.broadcast
reduce_scatter_tensor = lt.dist.reduce_scatter
isend irecv = lt.dist.send and lt.dist.recv with the option async = true
get_rank = lt.dist.rank()
size get_world_size = lt.dist.world_size()
new_group = lt.dist.split(color)
DeviceMesh init_device_mesh device_mesh = lt.dist.mesh({2, 4}, {"data", "tensor"})
init init_process_group shutdown destroy_process_group: ranks are joined where the script begins
]]

texts.json = [[
loads parse = lt.json.decode
dumps = lt.json.encode
]]

texts.linalg = [[
eig eigvals: lt.linalg.eigh is for symmetric matrices; there is no decomposition of others
inverse = lt.linalg.inv
]]

texts.autograd = [[
Variable variable = lt.tensor: tensors have gradients themselves
jacobian hessian = lt.autograd.functional.%0
]]

texts.data = [[
Sampler SequentialSampler = a list of positions, or an object as lt.data.RandomSampler
default_collate default_convert = lt.data.collate(samples)
]]

texts.metrics = [[
*F1Score = lt.metrics.F1
*Metric = lt.metrics.%1()
Binary* Multiclass* Multilabel* = lt.metrics.%1, with num_classes or num_labels, binary without them
?: this metric is not here; a subclass of lt.Metric with update and compute is a few lines
]]

return texts
