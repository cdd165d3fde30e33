-- spec/mistakes/data_spec.lua: data sets, loaders, files that are missing.
local mistakes = require "spec.mistakes.mistakes"

mistakes("data", {
  { "tensors of different lengths", [[
local d = lt.data.TensorDataset(lt.ones(3, 2), lt.ones(4)) --!]],
    "TensorDataset: tensor 2 has 4 samples, the others have 3: got a tensor [4]" },
  { "a tensor in place of a data set", [[
local d = lt.data.DataLoader(lt.ones(10, 2), {batch_size = 2}) --!
for b in d:batches() do print(b) break end]],
    "DataLoader: dataset must have get(i) and a length, or be iterable: got a tensor [10, 2]: "
    .. "write lt.data.TensorDataset(x)" },
  { "batch_size 0", [[
local d = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(10, 2)), {batch_size = 0}) --!]],
    "DataLoader: batch_size must be at least 1: got 0" },
  { "shuffle as a text", [[
local d = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(10, 2)), {shuffle = "yes"}) --!]],
    "DataLoader: shuffle must be true or false: got 'yes'" },
  { "batchsize", [[
local d = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(10, 2)), {batchsize = 4}) --!]],
    "DataLoader: unknown option 'batchsize'; did you mean 'batch_size'?" },
  { "shuffle and a sampler", [[
local ds = lt.data.TensorDataset(lt.ones(10, 2))
local d = lt.data.DataLoader(ds, {shuffle = true, sampler = lt.data.RandomSampler(ds)}) --!]],
    "DataLoader: shuffle and sampler exclude each other" },
  { "next(iter(loader)) of Python", [[
local d = lt.data.DataLoader(lt.data.TensorDataset(lt.randn(8, 4)))
local batch = next(iter(d)) --!]],
    "attempt to call a nil value (global 'iter'); write for batch in loader:batches() do" },
  { "for batch in loader", [[
local d = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(10, 2)), {batch_size = 5})
for batch in d do print(batch) end --!]],
    "DataLoader: loop with `for batch, i in loader:batches() do`" },
  { "ipairs of a loader", [[
local d = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(10, 2)), {batch_size = 5})
for i, batch in ipairs(d) do print(i, batch) end --!]],
    "DataLoader: loop with `for batch, i in loader:batches() do`" },
  { "a Dataset without its methods", [[
local D = lt.data.Dataset:extend("D")
local d = lt.data.DataLoader(D(), {batch_size = 5}) --!
for b in d:iterate() do end]],
    "D: define __len()" },
  { "parts that do not add up", [[
local a, b = lt.data.random_split(lt.data.TensorDataset(lt.ones(10, 2)), {6, 3}) --!]],
    "random_split: lengths sum to 9: the data set has 10 samples" },
  { "a Subset with index 0", [[
local s = lt.data.Subset(lt.data.TensorDataset(lt.ones(10, 2)), {0}) --!
print(s:get(1))]],
    "Subset: entry 1 must be a position in 1..10, got 0" },
  { "sample 0", [[
local s = lt.data.TensorDataset(lt.ones(10, 2)):get(0) --!]],
    "TensorDataset: there is no sample 0: positions are 1..10" },
  { "a folder that is missing", [[
local s = lt.data.mnist("nowhere") --!
print(s)]],
    "data.mnist: no train-images-idx3-ubyte and train-labels-idx1-ubyte (plain or .gz) in "
    .. "nowhere" },
  { "an ImageFolder that is missing", [[
local s = lt.data.ImageFolder("nowhere") --!]],
    "data.ImageFolder: cannot list nowhere: No such file or directory" },
  { "a size as a text", [[
local t = lt.transforms.Resize("224") --!]],
    "transforms.Resize: size must be an integer or {height, width}: got '224'" },
  { "pad_sequence of a tensor", [[
local t = lt.data.pad_sequence(lt.ones(3)) --!]],
    "pad_sequence: needs a list of tensors, got a tensor [3]" },
  { "a negative number of workers", [[
local d = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(10, 2)), {num_workers = -1}) --!]],
    "DataLoader: num_workers must be at least 0: got -1" },
  { "a loop over a data set", [[
for x in lt.data.TensorDataset(lt.ones(3)) do end --!]],
    "TensorDataset: loop with `for i = 1, #ds do local sample = ds:get(i) ... end`" },
  { "a misspelt reader", [[
local s = lt.csv.reed("x") --!]],
    "csv: there is no 'reed'; did you mean 'read'?" },
  { "a misspelt transform of Fourier", [[
local s = lt.fft.ftt(lt.ones(3)) --!]],
    "fft: there is no 'ftt'; did you mean 'fft'?" },
  { "a file that cannot be read", [[
local text = assert(lt.csv.read("/none/data.csv")) --!]],
    "csv.read: cannot open /none/data.csv: No such file or directory" },
  { "a checkpoint that cannot be read", [[
local state = assert(lt.load("/none/model.ckpt")) --!]],
    "load: cannot open /none/model.ckpt: No such file or directory" },
  { "an image that cannot be read", [[
local x = assert(lt.image.read("/none/cat.png")) --!]],
    "image.read: cannot open /none/cat.png: No such file or directory" },
  { "a tokenizer that cannot be read", [[
local t = assert(lt.text.tokenizer("/none/tokenizer.json")) --!]],
    "text.tokenizer: cannot open /none/tokenizer.json: No such file or directory" },
  { "an empty data set", [[
local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.zeros(0, 3))) --!]],
    "DataLoader: the data set is empty" },
  { "a column that is not there", [[
local t = assert(lt.csv.table{{"width", lt.ones(3)}})
local w = t:tensor("wdith") --!]],
    "Table:tensor: there is no column 'wdith'; did you mean 'width'?" },
})
