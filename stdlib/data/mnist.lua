-- stdlib/data/mnist.lua: reads the MNIST files, or a data set in the same format.

local TensorDataset = require "ltrain.data.TensorDataset"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = {
  split = { type = "string", default = "train", choices = { "train", "test" } },
}
local PREFIX <const> = { train = "train", test = "t10k" }

-- The path of a file, plain or compressed, under either of the names that are in use.
local function find(folder, prefix, kind, dims)
  for _, form in ipairs { "%s-%s-idx%d-ubyte", "%s-%s.idx%d-ubyte" } do
    local path = folder .. "/" .. form:format(prefix, kind, dims)
    if c.io.kind(path) == "file" then return path end
    if c.io.kind(path .. ".gz") == "file" then return path .. ".gz" end
  end
end

local function read(path, dims)
  local tensor, message = c.io.read_idx(path)
  if not tensor then errors.blame("data.mnist: %s", message) end
  if tensor.dtype ~= "u8" or #tensor.shape ~= dims then
    errors.blame("data.mnist: %s holds %s [%s]: u8 with %d dimensions was expected", path,
      tensor.dtype, table.concat(tensor.shape, ", "), dims)
  end
  return tensor
end

local function check_pair(images, labels, images_path, labels_path)
  if images.shape[1] ~= labels.shape[1] then
    errors.blame("data.mnist: %s has %d images, %s has %d labels", images_path, images.shape[1],
      labels_path, labels.shape[1])
  end
end

--- Returns a TensorDataset of images f32 [N, 1, H, W] in 0..1 and labels i64 [N].
return function(folder, options)
  config.argument(folder, "string", "data.mnist", "folder")
  options = config.check(options, OPTIONS, "data.mnist")
  local prefix = PREFIX[options.split]
  local images_path, labels_path =
    find(folder, prefix, "images", 3), find(folder, prefix, "labels", 1)
  if not images_path or not labels_path then
    local may, message = c.io.list_folder(folder) -- a state that may not look finds nothing
    if not may and message:find("may not read", 1, true) then
      errors.blame("data.mnist: %s", message:match("^[%w_]+: (.*)$") or message)
    end
    local missing = {}
    if not images_path then missing[1] = prefix .. "-images-idx3-ubyte" end
    if not labels_path then missing[#missing + 1] = prefix .. "-labels-idx1-ubyte" end
    errors.blame("data.mnist: no %s (plain or .gz) in %s", table.concat(missing, " and "), folder)
  end
  local images, labels = read(images_path, 3), read(labels_path, 1)
  check_pair(images, labels, images_path, labels_path)
  return TensorDataset(images:unsqueeze(2), labels:to("i64")):scaled(1, 255)
end
