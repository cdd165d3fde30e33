-- spec/api/rows.lua: calls of public functions, by the names of spec/api/public.lua.
--
-- OPTIONS is a table with an unknown option, in the place of the table of options; EXTRA a value
-- beyond what the function takes. Each call must raise. `x` is a tensor of shape [2, 2], `w` a
-- parameter, `net` a Linear, `data` a TensorDataset, `sgd` an optimizer of net, `fit` a Trainer's
-- fit of a module whose training_step is the given function.
local rows = {}

--- With a table of options, where it does not follow from the names of the parameters.
rows.options = {
  ["lt.triplet_margin_with_distance_loss"] =
    "lt.triplet_margin_with_distance_loss(x, x, x, OPTIONS)",
  ["x:triplet_margin_with_distance_loss"] = "x:triplet_margin_with_distance_loss(x, x, OPTIONS)",
  ["lt.csv.table"] = "lt.csv.table{ { 'a', x[1] } }:tensor('a', OPTIONS)",
  ["lt.plot"] = "lt.plot(x[1], OPTIONS)", ["lt.show"] = "lt.show(x, OPTIONS)",
  ["lt.Module:show_histograms"] = "net:show_histograms(OPTIONS)",
  ["x:show"] = "x:show(OPTIONS)",
  ["lt.numpy.memmap"] = "lt.numpy.memmap('absent', OPTIONS)",
  ["lt.data.cifar10"] = "lt.data.cifar10('absent', OPTIONS)",
  ["lt.data.cifar100"] = "lt.data.cifar100('absent', OPTIONS)",
  ["lt.data.ImageFolder"] = "lt.data.ImageFolder('absent', OPTIONS)",
  ["lt.text.BPETokenizer:train"] = "lt.text.BPETokenizer.train('a', OPTIONS)",
  ["lt.text.CharTokenizer:train"] = "lt.text.CharTokenizer.train('a', OPTIONS)",
  ["lt.text.WordTokenizer:train"] = "lt.text.WordTokenizer.train('a', OPTIONS)",
  ["lt.text.Tokenizer:decode"] = "lt.text.CharTokenizer.train('a'):decode({ 0 }, OPTIONS)",
  ["lt.text.Tokenizer:decode_batch"] =
    "lt.text.CharTokenizer.train('a'):decode_batch(lt.zeros(1, 1):long(), OPTIONS)",
  ["lt.text.Tokenizer:encode"] = "lt.text.CharTokenizer.train('a'):encode('a', OPTIONS)",
  ["lt.text.Tokenizer:encode_batch"] =
    "lt.text.CharTokenizer.train('a'):encode_batch({ 'a' }, OPTIONS)",
  ["dist.Group:batch"] = "lt.dist.split(0):batch({ { 'barrier' } }, OPTIONS)",
  ["lt.dist.batch"] = "lt.dist.batch({ { 'all_reduce', x } }, OPTIONS)",
  ["lt.horovod.grouped_allreduce"] = "lt.horovod.grouped_allreduce({ x }, OPTIONS)",
  ["lt.Trainer"] = "lt.Trainer(OPTIONS)",
  ["lt.Trainer:fit"] = "lt.Trainer{}:fit(net, data, OPTIONS)",
  ["lt.Trainer:validate"] = "lt.Trainer{}:validate(net, data, OPTIONS)",
  ["lt.Trainer:test"] = "lt.Trainer{}:test(net, data, OPTIONS)",
  ["lt.Trainer:predict"] = "lt.Trainer{}:predict(net, data, OPTIONS)",
  ["lt.Trainer:steps"] = "lt.Trainer{}:steps('fit', net, data, OPTIONS)()",
  ["lt.Trainer:save_checkpoint"] = "lt.Trainer{}:save_checkpoint('x', OPTIONS)",
  ["lt.Trainer:request_checkpoint"] =
    "fit(function(self) self.trainer:request_checkpoint('x', OPTIONS) end)",
  ["lt.Module:all_gather"] = "net:all_gather(x, OPTIONS)",
  ["lt.Module:log"] = "fit(function(self) self:log('a', 1, OPTIONS) end)",
  ["lt.Module:log_dict"] = "fit(function(self) self:log_dict({ a = 1 }, OPTIONS) end)",
  ["lt.Module:log_histogram"] = "fit(function(self) self:log_histogram('a', x, OPTIONS) end)",
  ["lt.Module:log_image"] = "fit(function(self) self:log_image('a', x, OPTIONS) end)",
  ["lt.Module:log_text"] = "fit(function(self) self:log_text('a', 'b', OPTIONS) end)",
  ["lt.Module:load_state_dict"] = "net:load_state_dict(net:state_dict(), OPTIONS)",
  ["lt.Module:buffers"] = "net:buffers(OPTIONS)",
  ["lt.Module:named_buffers"] = "net:named_buffers(OPTIONS)",
  ["lt.Module:named_parameters"] = "net:named_parameters(OPTIONS)",
  ["lt.Module:optimizers"] = "fit(function(self) self:optimizers(OPTIONS) end)",
  ["lt.Module:parameters"] = "net:parameters(OPTIONS)",
  ["lt.Module:materialize"] = "net:materialize(OPTIONS)",
  ["lt.Module:to_empty"] = "net:to_empty(OPTIONS)",
  ["lt.Module:to"] = "net:to{ device = 'cpu', no_such_option = 1 }",
  ["lt.Module:to_onnx"] = "net:to_onnx('absent.onnx', x, OPTIONS)",
  ["lt.Module:zero_grad"] = "net:zero_grad(OPTIONS)",
  ["lt.Module:num_parameters"] = "net:num_parameters(OPTIONS)",
  ["lt.Module:register_buffer"] = "net:register_buffer('b', x, OPTIONS)",
  ["lt.Metric:plot"] = "lt.metrics.Mean():plot(OPTIONS)",
  ["lt.metrics.MetricCollection:plot"] =
    "lt.metrics.MetricCollection{ a = lt.metrics.Mean() }:plot(OPTIONS)",
  ["lt.Metric:add_state"] = "lt.Metric():add_state('s', 0, OPTIONS)",
  ["lt.onnx.export"] = "lt.onnx.export(net, x, 'absent.onnx', OPTIONS)",
  ["lt.Optimizer:zero_grad"] = "sgd:zero_grad(OPTIONS)",
  ["lt.Optimizer:add_param_group"] = "sgd:add_param_group{ params = { w }, no_such_option = 1 }",
  ["lt.ClusterEnvironment"] = "lt.clusters.Local(OPTIONS)",
  ["lt.DataModule:from_datasets"] = "lt.DataModule.from_datasets(OPTIONS)",
  ["lt.data.mnist"] = "lt.data.mnist('.', OPTIONS)",
  ["lt.data.random_split"] = "lt.data.random_split(data, { 1, 1 }, OPTIONS)",
  ["lt.dist.launch"] = "lt.dist.launch(1, print, OPTIONS)",
  ["dist.Group:split"] = "lt.dist.split(0):split(0, OPTIONS)",
  ["dist.Group:all_reduce"] = "lt.dist.split(0):all_reduce(x, OPTIONS)",
  ["lt.nn.clip_grad_norm_"] = "lt.nn.clip_grad_norm_({ w }, 1, OPTIONS)",
  ["lt.nn.init.xavier_normal_"] = "lt.nn.init.xavier_normal_(w, OPTIONS)",
  ["lt.nn.init.xavier_uniform_"] = "lt.nn.init.xavier_uniform_(w, OPTIONS)",
  ["base.ResNet"] = "lt.models.resnet18(OPTIONS)",
  ["base.VGG"] = "lt.models.vgg16(OPTIONS)",
  ["lt.models.bert:forward"] = "lt.models.bert.forward(net, x, OPTIONS)",
  ["lt.distributions.Distribution:set_parameters"] =
    "lt.distributions.Normal(0.0, 1.0):set_parameters({ 'loc' }, { 0.0 }, OPTIONS)",
  ["lt.distributions.Distribution:set_vector"] =
    "lt.distributions.Normal(0.0, 1.0):set_vector({ 'loc' }, { lt.ones(2) }, OPTIONS)",
  ["lt.distributions.Independent"] =
    "lt.distributions.Independent(lt.distributions.Normal(lt.ones(2), 1.0), 1, OPTIONS)",
  ["lt.distributions.LowRankMultivariateNormal"] =
    "lt.distributions.LowRankMultivariateNormal(lt.ones(2), lt.ones(2, 1), lt.ones(2), OPTIONS)",
  ["lt.distributions.MixtureSameFamily"] = "lt.distributions.MixtureSameFamily("
    .. "lt.distributions.Categorical(lt.ones(2)), "
    .. "lt.distributions.Normal(lt.ones(2), 1.0), OPTIONS)",
  ["lt.distributions.TransformedDistribution"] = "lt.distributions.TransformedDistribution("
    .. "lt.distributions.Normal(0.0, 1.0), "
    .. "lt.distributions.ExpTransform(), OPTIONS)",
  ["lt.optim.AveragedModel"] = "lt.optim.AveragedModel(net, OPTIONS)",
  ["lt.strategies.register"] = "lt.strategies.register('mine', lt.strategies.DDP, OPTIONS)",
  ["lt.affine_grid"] = "lt.affine_grid(lt.ones(1, 2, 3), { 1, 1, 2, 2 }, OPTIONS)",
  ["x:affine_grid"] = "lt.ones(1, 2, 3):affine_grid({ 1, 1, 2, 2 }, OPTIONS)",
  ["x:embedding_bag"] = "x:embedding_bag(x, OPTIONS)",
  ["x:grid_sample"] = "x:grid_sample(x, OPTIONS)",
  ["x:interpolate"] = "x:interpolate(OPTIONS)",
  ["lt.Module:register_forward_hook"] = "net:register_forward_hook(print, OPTIONS)",
  ["lt.Module:register_full_backward_pre_hook"] =
    "net:register_full_backward_pre_hook(print, OPTIONS)",
  ["lt.Module:state_dict"] = "net:state_dict(OPTIONS)",
  ["lt.Module:register_forward_pre_hook"] = "net:register_forward_pre_hook(print, OPTIONS)",
  ["lt.Module:register_full_backward_hook"] = "net:register_full_backward_hook(print, OPTIONS)",
  ["lt.nn.utils.clip_grad_norm_"] = "lt.nn.utils.clip_grad_norm_({ w }, 1, OPTIONS)",
  ["lt.grad"] = "lt.grad(w:sum(), w, OPTIONS)",
  ["lt.parameter"] = "lt.parameter(x, OPTIONS)",
  ["lt.tensor"] = "lt.tensor(1, OPTIONS)",
  ["lt.arange"] = "lt.arange(1, 2, OPTIONS)",
  ["lt.ones"] = "lt.ones(2, 2, OPTIONS)",
  ["lt.zeros"] = "lt.zeros({ 2 }, OPTIONS)",
  ["x:backward"] = "w:sum():backward(lt.ones({}), OPTIONS)",
  ["x:to"] = "x:to(OPTIONS)",
  ["x:fill_"] = "x:fill_(1, OPTIONS)",
  ["x:zero_"] = "x:zero_(OPTIONS)",
}
rows.options["lt.nn.utils.parametrize.register_parametrization"] =
  rows.options["lt.nn.utils.register_parametrization"]
for _, name in ipairs { "empty", "full", "ones", "rand", "randint", "randn", "zeros" } do
  local like = name .. "_like"
  rows.options["lt." .. like] = "lt." .. like .. "(x, OPTIONS)"
  rows.options["x:" .. like] = "x:" .. like .. "(OPTIONS)"
end

for name, made in pairs {
  GLU = "(", Hardshrink = "(", PReLU = "(", Softplus = "(", Softshrink = "(", SwiGLU = "(",
  BatchNorm1d = "(2, ", TransformerEncoderLayer = "(2, 1, ", TransformerEncoder = "(net, 1, ",
  TransformerDecoder = "(net, 1, ",
} do
  rows.options["lt.nn." .. name] = "lt.nn." .. name .. made .. "OPTIONS)"
end
-- Transforms, with what comes before the options.
for name, before in pairs { GaussianBlur = "3, ", RandomApply = "{}, ",
  RandomChoice = "{ print }, ", ToDtype = "'f32', " } do
  rows.options["lt.transforms." .. name] = ("lt.transforms.%s(%sOPTIONS)"):format(name, before)
end
rows.options["base.Convolution"] = "lt.nn.Conv1d(1, 1, 3, OPTIONS)"
local LAYER <const> = "lt.nn.TransformerEncoderLayer(2, 1)"
for name, call in pairs {
  ["lt.nn.MultiheadAttention:forward"] = "lt.nn.MultiheadAttention(2, 1)(lt.ones(1, 1, 2), ",
  ["lt.nn.TransformerEncoderLayer:forward"] = LAYER .. "(lt.ones(1, 1, 2), ",
  ["lt.nn.TransformerDecoderLayer:forward"] =
    "lt.nn.TransformerDecoderLayer(2, 1)(lt.ones(1, 1, 2), lt.ones(1, 1, 2), ",
  ["lt.nn.TransformerEncoder:forward"] =
    "lt.nn.TransformerEncoder(" .. LAYER .. ", 1)(lt.ones(1, 1, 2), ",
  ["lt.nn.TransformerDecoder:forward"] =
    "lt.nn.TransformerDecoder(lt.nn.TransformerDecoderLayer(2, 1), 1)(lt.ones(1, 1, 2), "
      .. "lt.ones(1, 1, 2), ",
  ["lt.nn.Transformer:forward"] =
    "lt.nn.Transformer(2, 1, 1, 1)(lt.ones(1, 1, 2), lt.ones(1, 1, 2), ",
} do
  rows.options[name] = call .. "OPTIONS)"
end
for _, name in ipairs { "LSTM", "GRU", "RNN" } do
  rows.options[("lt.nn.%s:forward"):format(name)] =
    ("lt.nn.%s(2, 1)(lt.ones(1, 1, 2), nil, OPTIONS)"):format(name)
end
rows.options["base.Recurrent:run"] = rows.options["lt.nn.LSTM:forward"]
rows.options["base.Categories"] = "lt.data.OrdinalEncoder({ 'a' }, OPTIONS)"
rows.options["base.BatchNorm"] = rows.options["lt.nn.BatchNorm1d"]
rows.options["base.TransformerLayer:make"] = rows.options["lt.nn.TransformerEncoderLayer"]
rows.options["base.TransformerStack"] = rows.options["lt.nn.TransformerEncoder"]
rows.options["base.TransformerStack:run"] = rows.options["lt.nn.TransformerEncoder:forward"]
rows.options["base.Loss"] = "lt.nn.L1Loss(OPTIONS)"
rows.options["lt.nn.Transformer"] = "lt.nn.Transformer(OPTIONS)"
--- One argument too many, of functions that read what comes by themselves.
rows.extra = {
  ["lt.nn.utils.parametrizations.orthogonal"] = "lt.nn.utils.parametrizations.orthogonal("
    .. "lt.nn.Linear(2, 2), 'weight', 'cayley', true, EXTRA)",
  ["lt.block_diag"] = "lt.block_diag({ x }, EXTRA)",
  ["lt.cartesian_prod"] = "lt.cartesian_prod({ x }, EXTRA)",
  ["lt.slice_scatter"] = "lt.slice_scatter(x, x, 1, 1, 2, 1, EXTRA)",
  ["x:slice_scatter"] = "x:slice_scatter(x, 1, 1, 2, 1, EXTRA)",
  ["lt.data.pad_sequence"] = "lt.data.pad_sequence({ x }, true, 0, 'right', 3, EXTRA)",
  ["lt.load"] = "lt.load('absent', nil, false, EXTRA)",
  ["lt.Trainer:fit"] = "lt.Trainer{}:fit(net, data, data, EXTRA)",
  ["lt.Trainer:validate"] = "lt.Trainer{}:validate(net, data, EXTRA)",
  ["lt.Trainer:test"] = "lt.Trainer{}:test(net, data, EXTRA)",
  ["lt.Trainer:predict"] = "lt.Trainer{}:predict(net, data, EXTRA)",
  ["lt.Trainer:steps"] = "lt.Trainer{}:steps('fit', net, data, data, EXTRA)()",
  ["lt.Module:backward"] = "net:backward(w:sum(), lt.ones({}), {}, EXTRA)",
  ["lt.data.TensorDataset"] = "lt.data.TensorDataset(x, EXTRA)",
  ["lt.data.ConcatDataset"] = "lt.data.ConcatDataset(data, EXTRA)",
  ["lt.data.StackDataset"] = "lt.data.StackDataset(data, EXTRA)",
  ["lt.nn.Sequential"] = "lt.nn.Sequential(net, EXTRA)",
  ["lt.optim.AveragedModel:forward"] = "lt.optim.AveragedModel(net)(x, EXTRA)",
  ["lt.nn.Sequential:forward"] = "lt.nn.Sequential(net)(x, EXTRA)",
  ["lt.nn.ModuleList"] = "lt.nn.ModuleList(net, EXTRA)",
  ["lt.dist.on_rank_zero"] = "lt.dist.on_rank_zero(lt.hash, x, EXTRA)",
  ["lt.dist.rank_zero_first"] = "lt.dist.rank_zero_first(lt.hash, x, EXTRA)",
  ["lt.dist.long"] = "lt.dist.long(lt.hash, x, EXTRA)",
  ["lt.arange"] = "lt.arange(1, 2, {}, EXTRA)",
  ["lt.ones"] = "lt.ones({ 2 }, 'f32', 'cpu', EXTRA)",
  ["lt.zeros"] = "lt.zeros({ 2 }, 'f32', 'cpu', EXTRA)",
  ["lt.no_grad"] = "lt.no_grad(nil, EXTRA)",
  ["lt.enable_grad"] = "lt.enable_grad(nil, EXTRA)",
  ["lt.allow_update"] = "lt.allow_update(nil, EXTRA)",
  ["lt.set_grad_enabled"] = "lt.set_grad_enabled(true, nil, EXTRA)",
  ["lt.detect_anomaly"] = "lt.detect_anomaly(nil, EXTRA)",
  ["lt.autocast"] = "lt.autocast('bf16', nil, EXTRA)",
  ["x:fill_"] = "x:fill_(1, EXTRA)",
  ["x:zero_"] = "x:zero_(EXTRA)",
}
for name, before in pairs { empty = "", ones = "", rand = "", randn = "", zeros = "",
  full = "1, ", randint = "0, 2, " } do
  local arguments = before .. "'f32', 'cpu', EXTRA)"
  rows.extra["lt." .. name .. "_like"] = "lt." .. name .. "_like(x, " .. arguments
  rows.extra["x:" .. name .. "_like"] = "x:" .. name .. "_like(" .. arguments
end
for name, rest in pairs { grad = "1, true, ", grad_and_value = "1, true, ", jacrev = "1, true, ",
  jacfwd = "1, true, ", hessian = "1, ", vmap = "1, 1, 'same', 1, ", jvp = "{}, {}, true, " } do
  rows.extra["lt.func." .. name] = ("lt.func.%s(print, %sEXTRA)"):format(name, rest)
end
rows.extra["lt.vmap"] = rows.extra["lt.func.vmap"]
for name, rest in pairs { jacobian = "", hessian = "", vjp = "x, ", jvp = "x, ", vhp = "x, ",
  hvp = "x, " } do
  rows.extra["lt.autograd.functional." .. name] =
    ("lt.autograd.functional.%s(print, x, %strue, true, EXTRA)"):format(name, rest)
end
rows.extra["lt.autograd.backward"] = "lt.autograd.backward(w, x, false, false, w, EXTRA)"
for _, name in ipairs { "no_grad", "enable_grad", "set_grad_enabled", "detect_anomaly" } do
  rows.extra["lt.autograd." .. name] = rows.extra["lt." .. name]
end
for _, name in ipairs { "gradcheck", "gradgradcheck" } do
  rows.options["lt.autograd." .. name] = rows.options["lt." .. name]
end
for name, call in pairs { weight_norm = "weight_norm(net, 'weight', 1, EXTRA)",
  spectral_norm = "spectral_norm(net, 'weight', 1, 1e-12, 1, EXTRA)",
  remove_parametrizations = "remove_parametrizations(net, 'weight', true, EXTRA)",
  get_total_norm = "get_total_norm(x, 2, true, EXTRA)" } do
  rows.extra["lt.nn.utils." .. name] = "lt.nn.utils." .. call
end
for _, name in ipairs { "weight_norm", "spectral_norm" } do
  rows.extra["lt.nn.utils.parametrizations." .. name] = rows.extra["lt.nn.utils." .. name]
end
rows.extra["lt.nn.utils.parametrize.remove_parametrizations"] =
  rows.extra["lt.nn.utils.remove_parametrizations"]
for name, rest in pairs { l1_unstructured = "1, x, ", random_unstructured = "1, ",
  ln_structured = "1, 2, 1, x, ", random_structured = "1, 1, ", custom_from_mask = "x, " } do
  rows.extra["lt.nn.utils.prune." .. name] = ("lt.nn.utils.prune.%s(net, 'weight', %sEXTRA)")
    :format(name, rest)
end
for _, dtype in ipairs(require "ltrain".dtypes()) do
  rows.extra["x:" .. dtype.method] = "x:" .. dtype.method .. "(EXTRA)"
end
for _, name in ipairs { "all_gather", "all_reduce", "all_reduce_", "all_to_all", "broadcast",
  "gather", "reduce", "reduce_scatter", "scatter", "recv" } do
  rows.extra["dist.Group:" .. name] = "lt.dist.split(0):" .. name .. "(x, {}, EXTRA)"
end
rows.extra["dist.Group:barrier"] = "lt.dist.split(0):barrier({}, EXTRA)"
rows.extra["dist.Group:send"] = "lt.dist.split(0):send(x, 0, {}, EXTRA)"

--- Functions that take whatever comes, and why.
rows.options["lt.callbacks.ModelPruning"] = "lt.callbacks.ModelPruning('l1_unstructured', OPTIONS)"

rows.open = {
  ["lt.einsum"] = "takes any number of tensors",
  ["lt.nn.utils.checkpoint"] = "hands it to the function",
  ["lt.Module:print"] = "prints it", ["lt.Trainer:print"] = "prints it",
  ["lt.Module:save_hyperparameters"] = "takes any number of tables",
  ["lt.DataModule:save_hyperparameters"] = "takes any number of tables",
  ["lt.Module:forward"] = "raises that a class has none",
  ["lt.callbacks.BasePredictionWriter:write_on_batch_end"] = "a hook",
  ["lt.callbacks.PredictionWriter:write_on_batch_end"] = "a hook",
  ["lt.Metric:update"] = "raises that a class has none",
  ["lt.Module:manual_backward"] = "hands it to backward",
  ["lt.Trainer:manual_backward"] = "hands it to backward",
  ["lt.func.vjp"] = "hands it to the function",
  ["lt.nn.utils.cached"] = "hands it to the function",
  ["lt.nn.utils.parametrize.cached"] = "hands it to the function",
  ["lt.nn.utils.prune.BasePruningMethod:apply"] = "hands it to the class",
  ["lt.Optimizer:join"] = "joins any number of lists",
  ["lt.ClusterEnvironment:integer"] = "takes any number of names",
  ["lt.strategies.Pipeline:run_step"] = "hands it to the step",
}

for name in ([[BackboneFinetuning DeviceStatsMonitor EMAWeightAveraging OnExceptionCheckpoint
    LayerMonitor SpikeMonitor LearningRateFinder BatchSizeFinder BasePredictionWriter
    PredictionWriter
    StochasticWeightAveraging
    ThroughputMonitor
    WeightAveraging]]):gmatch "%S+" do
  rows.options["lt.callbacks." .. name] = ("lt.callbacks.%s(OPTIONS)"):format(name)
end
for name, size in pairs { bert = "vocab_size = 8, hidden_size = 8, num_hidden_layers = 1, "
    .. "num_attention_heads = 2, intermediate_size = 8", gpt2 = "vocab_size = 8, n_positions = 4, "
    .. "n_embd = 8, n_layer = 1, n_head = 2", llama = "vocab_size = 8, hidden_size = 8, "
    .. "intermediate_size = 8, num_hidden_layers = 1, num_attention_heads = 2" } do
  rows.options[("lt.models.%s:tensor_parallel_plan"):format(name)] =
    ("lt.models.%s{ %s }:tensor_parallel_plan(OPTIONS)"):format(name, size)
end
require "spec.api.metric_rows"(rows)

return rows
