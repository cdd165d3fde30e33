-- stdlib/data/cifar.lua: reads the binary files of CIFAR-10 and CIFAR-100.

local TensorDataset = require "ltrain.data.TensorDataset"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = {
  split = { type = "string", default = "train", choices = { "train", "test" } },
}
local PIXELS <const> = 3 * 32 * 32

-- Files of each set, the bytes of labels before each image, and the folder that archives have.
local SETS <const> = {
  cifar10 = { labels = 1, folder = "cifar-10-batches-bin", test = { "test_batch.bin" },
    train = { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
      "data_batch_5.bin" } },
  cifar100 = { labels = 2, folder = "cifar-100-binary", train = { "train.bin" },
    test = { "test.bin" } },
}

-- The rows of a file: labels, then the red, green and blue planes.
local function rows_of(path, width, where)
  local bytes, message = c.runtime.image.bytes(path)
  if not bytes then errors.blame("%s: %s", where, message:match "^[%w_.]+: (.*)$" or message) end
  local n <const> = bytes:numel()
  if n == 0 or n % width ~= 0 then
    errors.blame("%s: %s has %d bytes: images of %d bytes each were expected", where, path, n,
      width)
  end
  return bytes:view(-1, width)
end

local function read(name, folder, options)
  local where <const>, set <const> = "data." .. name, SETS[name]
  config.argument(folder, "string", where, "folder")
  local o <const> = config.check(options, OPTIONS, where)
  local within <const> = folder .. "/" .. set.folder
  local root <const> = c.io.kind(within) == "folder" and within or folder
  local parts = {}
  for k, file in ipairs(set[o.split]) do
    parts[k] = rows_of(root .. "/" .. file, set.labels + PIXELS, where)
  end
  local rows <const> = c.cat(parts)
  local images <const> = rows:narrow(2, set.labels + 1, PIXELS):contiguous():view(-1, 3, 32, 32)
  local labels <const> = rows:select(2, set.labels):to "i64" -- the fine one of two
  local data <const> = TensorDataset(images, labels):scaled(1, 255)
  return data
end

local cifar = {}

--- Returns a TensorDataset of images f32 [N, 3, 32, 32] in 0..1 and labels i64 [N] in 0..9, read
--- from the files of the "binary version". Options: `split` ("train" or "test").
function cifar.cifar10(folder, options)
  local data <const> = read("cifar10", folder, options)
  return data
end

--- The same for CIFAR-100: fine labels in 0..99.
function cifar.cifar100(folder, options)
  local data <const> = read("cifar100", folder, options)
  return data
end

return cifar
