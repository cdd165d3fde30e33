-- tools/docs/room_pages.lua: a page for each catalogue of stdlib: one section a public file.
local c = require "ltrain.c"
local dims_family = require "ltrain.core.dims_family"
local markdown = require "markdown"
local methods = require "methods"
local options_table = require "options_table"
local reference_section = require "ltrain.apps.prompt.reference_section"
local source = require "source"

-- Pages: folder, title, a line, files of other names: { path, name, module, field }, and an
-- introduction. The field is that of a table of classes that are made alike, the number of dims in
-- a family of nn.
local ROOMS <const> = {
  { "nn", "Layers and losses", "lt.nn", {
    { "stdlib/nn/initialise.lua", "nn.init", "ltrain.nn.initialise" },
    { "stdlib/nn/utils.lua", "nn.utils", "ltrain.nn.utils" },
    { "stdlib/nn/prune.lua", "nn.utils.prune", "ltrain.nn.prune" } } },
  { "models", "Models", "lt.models: well-known models", {
    { "stdlib/models/resnet.lua", "models.resnet18, models.resnet34, models.resnet50",
      "ltrain.models.resnet", "resnet18" },
    { "stdlib/models/vgg.lua", "models.vgg11, models.vgg13, models.vgg16, models.vgg19, "
      .. "models.vgg11_bn, models.vgg13_bn, models.vgg16_bn, models.vgg19_bn",
      "ltrain.models.vgg", "vgg16" },
    { "stdlib/models/keys.lua", "models.keys", "ltrain.models.keys" },
    { "stdlib/models/generate.lua", "lt.generate", "ltrain.models.generate" } }, [==[
As layers do, each model has the option `device` besides those of its table: where its parameters
and buffers are made ([meta](../guide/tensors.md#shapes-without-data): without data).]==] },
  { "optim", "Optimizers and schedulers", "lt.optim, lt.Optimizer, lt.GradScaler", {
    { "stdlib/optim/Optimizer.lua", "optim.Optimizer", "ltrain.optim.Optimizer" } } },
  { "autograd", "Derivatives", "lt.func, lt.vmap, lt.autograd", {
    { "stdlib/autograd/func.lua", "lt.func", "ltrain.autograd.func" },
    { "stdlib/autograd/vmap.lua", "lt.vmap", "ltrain.autograd.vmap" },
    { "stdlib/autograd/functional.lua", "lt.autograd.functional",
      "ltrain.autograd.functional" },
    { "stdlib/autograd/backward.lua", "lt.autograd.backward", "ltrain.autograd.backward" },
    { "stdlib/autograd/Function.lua", "lt.Function", "ltrain.autograd.Function" },
    { "stdlib/autograd/gradcheck.lua", "lt.gradcheck", "ltrain.autograd.gradcheck" },
    { "stdlib/autograd/gradgradcheck.lua", "lt.gradgradcheck",
      "ltrain.autograd.gradgradcheck" } }, [==[
`x:backward()` and `lt.grad` are on the page of [tensors](tensor.md#gradients); how to use all of
them: [gradients](../guide/tensors.md#gradients). lt.autograd has them under PyTorch's names too:
grad, no_grad, enable_grad, set_grad_enabled, is_grad_enabled, detect_anomaly, Function, gradcheck,
gradgradcheck.]==] },
  { "linalg", "Linear algebra", "lt.linalg: matrix factorizations, linear equations, matrix "
    .. "norms", {}, [==[
Matrices are tensors [B..., M, N] of f32 or f64; leading dims are batch dims. Computations use
LAPACK: the library LAPACKE is loaded when it is first needed (Debian: `apt install liblapacke`).
GPU tensors are copied to the CPU and back. All functions except matrix_rank are differentiable any
number of times. What is not unique, such as the signs of eigenvectors, is as returned by LAPACK.

```lua
local lt = require "ltrain"
local A, b = lt.tensor{{4.0, 1.0}, {1.0, 3.0}}, lt.tensor{1.0, 2.0}
print(lt.linalg.solve(A, b))
-- prints: tensor([0.0909, 0.6364])
print(lt.linalg.eigvalsh(A), lt.linalg.norm(A, "nuc"):item() > 6)
-- prints: tensor([2.3820, 4.6180])	true
```]==] },
  { "fft", "Fourier transforms", "lt.fft, lt.stft, lt.istft, lt.hann_window, lt.hamming_window", {},
    [==[
Complex numbers are stored in a last dim of size 2, the real and the imaginary part, as by PyTorch's
view_as_real (there is no complex dtype); `dim` and `dims` do not count it. Tensors are f32 or f64;
integers are converted to f32. Any length is supported. GPUs transform lengths of up to 4096; longer
transforms are computed on the CPU. In shapes, stft has B signals, T samples, L windows, N = n_fft
and F = N // 2 + 1 frequencies.

```lua
local lt = require "ltrain"
local y = lt.fft.rfft(lt.tensor{1.0, 2.0, 3.0, 4.0})
print(y[1], y[2])
-- prints: tensor([10.,  0.])	tensor([-2.,  2.])
print(lt.fft.irfft(y))
-- prints: tensor([1., 2., 3., 4.])
```]==] },
  { "special", "Special functions", "lt.special: PyTorch's torch.special", {}, [==[
Most of these are functions of lt and methods of tensors by the same name
([operations](ops.md#elementwise-of-one-tensor)): airy_ai, bessel_j0, bessel_j1, bessel_y0,
bessel_y1, digamma, entr, erf, erfc, erfcx, erfinv, exp2, expm1, i0, i0e, i1, i1e, log1p, log_ndtr,
log_softmax, logit, logsumexp, modified_bessel_k0, modified_bessel_k1, ndtr, ndtri, polygamma,
round, scaled_modified_bessel_k0, scaled_modified_bessel_k1, sinc, softmax, spherical_bessel_j0,
xlog1py, xlogy, zeta. By another name: expit is lt.sigmoid, gammainc lt.igamma, gammaincc
lt.igammac, gammaln lt.lgamma, modified_bessel_i0 lt.i0, modified_bessel_i1 lt.i1, multigammaln
lt.mvlgamma, psi lt.digamma.

```lua
local lt = require "ltrain"
print(lt.special.expit(lt.tensor{0.0, 2.0}), lt.special.i0(lt.tensor{1.0}))
-- prints: tensor([0.5000, 0.8808])	tensor([1.2661])
print(lt.special.legendre_polynomial_p(lt.tensor{0.5}, 2))
-- prints: tensor([-0.1250])
```]==] },
  { "signal", "Signals", "lt.signal: PyTorch's torch.signal", {
    { "stdlib/signal/windows.lua", "signal.windows", "ltrain.signal.windows" } }, [==[
Options of every window are `sym` (true; false: of a period that continues, for spectra), `dtype`
("f32" or "f64") and `device`. More have exponential (`center`, `tau` = 1), gaussian (`std` = 1),
general_cosine (`a`, a list), general_hamming (`alpha` = 0.54) and kaiser (`beta` = 12).

```lua
local lt = require "ltrain"
print(lt.signal.windows.bartlett(5))
-- prints: tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
print(lt.signal.windows.hann(4, {sym = false}))
-- prints: tensor([0.0000, 0.5000, 1.0000, 0.5000])
```]==] },
  { "text", "Text", "lt.text: tokenizers", {
    { "stdlib/text/load_tokenizer.lua", "text.tokenizer", "ltrain.text.load_tokenizer" } }, [==[
How to use them: [text](../guide/text.md). Regular expressions are matched with PCRE2, and Unicode
classes and normalization use utf8proc: both are loaded when they are first needed (Debian: `apt
install libpcre2-8-0 libutf8proc2`). Ids are equal to those of Hugging Face's library, except for
characters newer than the Unicode tables of either library.]==] },
  { "distributions", "Distributions", "lt.distributions: probability distributions", {} },
  { "data", "Data sets and loaders", "lt.data, lt.DataModule, lt.save, lt.load, lt.hash", {
    { "stdlib/files/save.lua", "lt.save", "ltrain.files.save" },
    { "stdlib/files/load.lua", "lt.load", "ltrain.files.load" },
    { "stdlib/core/hash.lua", "lt.hash", "ltrain.core.hash" } } },
  { "transforms", "Transforms", "lt.transforms: transforms of images, masks and boxes", {}, [==[
Names, distributions and results are those of `torchvision.transforms.v2`; resizing is equal to
PIL's. See [Images](../guide/images.md).

```lua
local lt = require "ltrain"
local T = lt.transforms
local t = T.Compose{T.Resize(4), T.CenterCrop(4), T.ToTensor()}
print(t(lt.full({3, 8, 6}, 51, {dtype = "u8"}))[1][1])
-- prints: tensor([0.2000, 0.2000, 0.2000, 0.2000])
```]==] },
  { "callbacks", "Callbacks", "lt.callbacks, lt.Callback", {
    { "stdlib/core/Callback.lua", "lt.Callback", "ltrain.core.Callback" } } },
  { "loggers", "Loggers", "lt.loggers, lt.Logger", {
    { "stdlib/core/Logger.lua", "lt.Logger", "ltrain.core.Logger" } } },
  { "metrics", "Metrics", "lt.metrics, lt.Metric", {
    { "stdlib/metrics/Metric.lua", "lt.Metric", "ltrain.metrics.Metric" } } },
  { "clusters", "Clusters", "lt.clusters, lt.ClusterEnvironment: the launcher of the ranks", {
    { "stdlib/core/ClusterEnvironment.lua", "lt.ClusterEnvironment",
      "ltrain.core.ClusterEnvironment" } } },
  { "parallel", "Parallelism", "lt.parallel: models and sequences that are divided among ranks",
    { { "stdlib/parallel/parallelize.lua", "lt.parallelize", "ltrain.parallel.parallelize" } }, [==[
How to use it: [tensor parallel](../guide/tensor_parallel.md), [context
parallelism](../guide/context_parallel.md), [mixture of
experts](../guide/mixture_of_experts.md).]==] },
  { "strategies", "Strategies", "lt.strategies, lt.Strategy and its parts, lt.shard, "
    .. "lt.register_forward_method", {
    { "stdlib/nn/shard.lua", "lt.shard", "ltrain.nn.shard" },
    { "stdlib/nn/register_forward_method.lua", "lt.register_forward_method",
      "ltrain.nn.register_forward_method" },
    { "stdlib/strategies/Strategy.lua", "lt.Strategy", "ltrain.strategies.Strategy" },
    { "stdlib/files/CheckpointIO.lua", "lt.CheckpointIO", "ltrain.files.CheckpointIO" },
    { "stdlib/core/Precision.lua", "lt.Precision", "ltrain.core.Precision" },
    { "stdlib/core/Accelerator.lua", "lt.Accelerator", "ltrain.core.Accelerator" } } },
}

-- Files with a page of their own.
local ELSEWHERE <const> = { ["ltrain.nn.Module"] = true }

-- Public files of a folder, by name: { path, shown name, module, dims }; `others` come after them.
local function files_of(folder, others)
  local list, public, later = {}, {}, {}
  local room = require("ltrain." .. folder)
  for _, name in pairs(room) do public[name] = true end
  for _, entry in ipairs(others) do later[entry[3]] = true end
  for _, full in ipairs(c.runtime.stdlib()) do
    local name = full:match("^ltrain%." .. folder .. "%.([%w_]+)$")
    local known = name and public[name]
    local several = known and type(room[name]) == "function" and type(require(full)) == "table"
    local path <const> = ("stdlib/%s/%s.lua"):format(folder, name)
    if known and not several and not ELSEWHERE[full] and not later[full] then
      list[#list + 1] = { path, folder .. "." .. name, full }
    end
    for n, member in ipairs(name and dims_family.names(name) or {}) do
      list[#list + 1] = { path, folder .. "." .. member, full, n }
    end
  end
  table.sort(list, function(a, b) return a[2] < b[2] end)
  return list
end

-- "nn.Conv2d(1, 2, 3): three numbers" as code and the words after it; nil when it begins otherwise.
local function example_of(doc)
  local code, rest = doc:match("^([%a][%w_.]*%b())(.*)$")
  if not code then code, rest = doc:match("^([%a][%w_.]*%b{})(.*)$") end
  if not code then return doc end
  local other = rest:match("^ or (.*)$")
  if other and other:find("^[%a][%w_.]*[({]") then
    return "`" .. code .. "` or " .. example_of(other)
  end
  return "`" .. code .. "`" .. rest
end

local function code_list(lines)
  return "`" .. table.concat(lines, "`, `") .. "`"
end

-- The file of stdlib/ that a function stands in.
local function file_of(root, fn)
  local name = debug.getinfo(source.written(fn), "S").source:match("^=?@?ltrain%.(.*)$")
  return name and source.read(root .. "stdlib/" .. name:gsub("%.", "/") .. ".lua")
end

-- The options of a class that may be given by place, after the arguments; nil: none.
local function placed(value)
  local is_class = type(value) == "table" and rawget(value, "__name")
  local text = is_class and value.__arguments or ""
  local names = {}
  for name in (text:match "|(.*)$" or ""):gmatch "%S+" do names[#names + 1] = name end
  local empty = text:find("(", 1, true) and " Those in parentheses are not supported." or ""
  return #names > 0 and "Also positional, in this order: " .. code_list(names) .. "." .. empty
    or nil
end

local function make_section(root, entry)
  local path, name, module = entry[1], entry[2], entry[3]
  local key, value = entry[4], require(module)
  if key then value = value[key] end
  local file = source.read(root .. path, math.type(key) and key)
  local said = reference_section.of(file, name, value, debug.getupvalue, function(init)
    return file_of(root, init)
  end)
  local parts = { "## " .. name, said.about }
  local function add(text)
    if text and text ~= "" then parts[#parts + 1] = text end
  end
  add(said.more)
  if said.call then add("`" .. said.call .. "`") end
  add(said.said and example_of(said.said))
  if #said.arguments > 0 then add("Arguments: " .. code_list(said.arguments)) end
  if said.base then add("A subclass of `" .. said.base .. "`.") end
  add(placed(value))
  if said.options then add(options_table(said.options, said.order)) end
  if #said.called_with > 0 then add("Called with: " .. code_list(said.called_with)) end
  add(said.forward_said)
  if said.call_options then add(options_table(said.call_options, said.order, "of a call")) end
  add(methods(file, reference_section.object(name), name))
  return markdown.join(parts)
end

-- Adds the sections of functions that have a file together.
local function add_functions(parts, root, folder)
  local room = require("ltrain." .. folder)
  for _, name in pairs(room) do
    local fn = type(room[name]) == "function" and room[name]
    local file = fn and file_of(root, fn)
    for _, entry in ipairs(file and file.functions or {}) do
      if entry.name == name and entry.doc then
        local options = source.options_of(fn)
        parts[#parts + 1] = markdown.join { ("## %s.%s"):format(folder, name),
          ("`%s.%s(%s)`"):format(folder, name, entry.arguments), example_of(entry.doc),
          options and options_table(options, file.text) }
      end
    end
  end
end

local function page(root, room)
  local folder, title, where, others, more = table.unpack(room)
  local parts = { "# " .. title, where .. ".", more }
  for _, entry in ipairs(files_of(folder, others)) do
    parts[#parts + 1] = make_section(root, entry)
  end
  add_functions(parts, root, folder)
  for _, entry in ipairs(others) do parts[#parts + 1] = make_section(root, entry) end
  return {
    file = folder .. ".md", title = title, about = where, source = "the files of stdlib/" .. folder,
    text = markdown.join(parts),
  }
end

return function(root)
  local list = {}
  for i, room in ipairs(ROOMS) do list[i] = page(root, room) end
  return list
end
