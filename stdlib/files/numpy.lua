--- stdlib/files/numpy.lua: lt.numpy: arrays in the files of NumPy.
--
--   local lt = require "ltrain"
--   lt.numpy.save("x.npy", lt.arange(6):reshape(2, 3))
--   print(lt.numpy.load("x.npy").shape[2]) -- prints: 3
--   lt.numpy.savez("all.npz", {x = lt.ones(2), y = lt.zeros(3)})
--   print(lt.numpy.load("all.npz").y) -- prints: tensor([0., 0., 0.])
--
-- All dtypes except bf16, which NumPy does not have. Big-endian arrays, and arrays in Fortran
-- order, can be read; arrays of Python objects, strings, complex numbers and structures are errors.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"
local tree = require "ltrain.core.tree"

local numpy = {}

local function check_path(path, where)
  if type(path) ~= "string" then
    errors.blame("%s: the path must be a string: got %s", where, errors.show(path))
  end
end

local function load_all(path)
  local zip <close>, message = c.io.open_zip(path, true)
  if not zip then return nil, message end
  local arrays = {}
  for _, member in ipairs(zip:names()) do
    local array, why = zip:array(member)
    if not array then return nil, ("%s (in %s)"):format(why, errors.show(member)) end
    arrays[member:match "^(.*)%.npy$" or member] = array
  end
  return arrays
end

--- Loads the array of a .npy file, or a table of those of a .npz file, compressed or not. Large
--- arrays of .npy files are memory-mapped, copy-on-write: writing to them does not change the file.
--- Returns nil and the reason if the file cannot be read.
---@param path string
function numpy.load(path)
  check_path(path, "numpy.load")
  local head, message = c.io.read_head(path, 4)
  if not head then return nil, message end
  if head == "PK\3\4" or head == "PK\5\6" then return load_all(path) end
  return c.io.npy_load(path)
end

--- Writes a tensor as a .npy file. Returns true, or nil and the reason.
---@param path string
---@param x Tensor
function numpy.save(path, x)
  check_path(path, "numpy.save")
  if not c.is_tensor(x) then
    errors.blame("numpy.save: needs a tensor, got %s", errors.show(x))
  end
  return c.io.npy_save(path, x)
end

local function save_all(where, path, arrays, compressed)
  check_path(path, where)
  if type(arrays) ~= "table" then
    errors.blame("%s: needs a table of tensors by name, got %s", where, errors.show(arrays))
  end
  local names, tensors = {}, {}
  for name, x in tree.pairs(arrays) do
    if type(name) ~= "string" or name == "" or name:find "[/\\%z]" then
      errors.blame("%s: this is not a valid array name: %s", where, errors.show(name))
    elseif not c.is_tensor(x) then
      errors.blame("%s: %s must be a tensor, got %s", where, name, errors.show(x))
    end
    names[#names + 1], tensors[#tensors + 1] = name .. ".npy", x
  end
  return c.io.npz_save(path, names, tensors, compressed)
end

--- Writes tensors by name as a .npz file. Returns true, or nil and the reason.
---@param path string
---@param arrays table
function numpy.savez(path, arrays)
  return save_all("numpy.savez", path, arrays, false)
end

--- The same, compressed.
---@param path string
---@param arrays table
function numpy.savez_compressed(path, arrays)
  return save_all("numpy.savez_compressed", path, arrays, true)
end

local MEMMAP <const> = {
  dtype = { type = "string", default = "u8" },
  offset = { type = "integer", default = 0, min = 0 },
  shape = { type = "table" },
}

--- Memory-maps the numbers of a file without a header, such as nanoGPT's token files ({dtype =
--- "u16"}): all from byte `offset` on, as a tensor [n], or those of `shape`. They are read when
--- they are accessed; writing to them does not change the file. Returns nil and the reason if the
--- file cannot be read.
---@param path string
function numpy.memmap(path, options)
  check_path(path, "numpy.memmap")
  local o <const> = config.check(options, MEMMAP, "numpy.memmap")
  return c.io.memmap(path, o.dtype, o.offset, o.shape)
end

return strict_arity.all(numpy, "numpy")
