-- stdlib/files/pickle_globals.lua: what the globals in a pickle of torch.save (module and class
-- names of Python) become: tensors, plain values, and objects with a plain value (a Namespace is a
-- table of its fields, a NumPy scalar a number).
--
-- torch_names.find is that of ltrain.files.pickle.

local c = require "ltrain.c"
local dtypes = require "ltrain.core.dtypes"
local errors = require "ltrain.core.errors"

local pickle_globals = {}

local MAX_DIMS <const> = 8

local function damaged(machine, what) machine:fail("is damaged: a tensor %s", what) end

-- A tuple of `count` integers; the shapes of tensors are small.
local function integers(machine, tuple)
  local count = machine.counts[tuple]
  if machine.kinds[tuple] ~= "tuple" then damaged(machine, "has no shape") end
  if count > MAX_DIMS then
    machine:fail("contains a tensor of more than %d dimensions", MAX_DIMS)
  end
  for i = 1, count do
    if math.type(tuple[i]) ~= "integer" then damaged(machine, "has no shape") end
  end
  return tuple
end

-- All of a storage, a tensor of one dim.
local function flat(machine, storage, dtype)
  if storage.flat then
    if storage.flat.dtype == dtype then return storage.flat end
    machine:fail("contains tensors of two dtypes that share memory: %s and %s", storage.flat.dtype,
      dtype)
  elseif storage.bytes % dtypes[dtype].size ~= 0 then
    damaged(machine, "ends within an element")
  end
  local tensor, message = machine.source:tensor(storage.key, dtype)
  if not tensor then error({ pickle = message, whole = true }, 0) end
  storage.flat = tensor
  return tensor
end

--- Ends the reading where a name stands for a dtype that ltrain does not have.
function pickle_globals.check_dtype(machine, token)
  if token.is_other then
    machine:fail("contains %s, a dtype that ltrain does not have", errors.printable(token.name))
  end
end

local function tensor_of(machine, args, dtype, metadata)
  local storage, offset = args[1], args[2]
  if machine.kinds[storage] ~= "storage" or math.type(offset) ~= "integer" then
    damaged(machine, "has no storage")
  elseif metadata ~= nil then
    machine:fail "contains a tensor that is conjugated or negated: save tensor.resolve_conj()"
  end
  dtype = dtype or storage.dtype
  if not dtype then damaged(machine, "has no dtype") end
  local size, stride = integers(machine, args[3]), integers(machine, args[4])
  local tensor = c.io.strided(flat(machine, storage, dtype), offset, size, stride)
  if not tensor then damaged(machine, "is outside of its storage") end
  machine.locations[tensor], machine.kinds[tensor] = storage.location, "tensor"
  return tensor
end

-- dtypes of NumPy: the format of a number in string.unpack and the dtype here, if there are such.
local NUMPY <const> = {
  b1 = { "B", "bool" }, i1 = { "b", "i8" }, u1 = { "B", "u8" }, i2 = { "<i2", "i16" },
  u2 = { "<I2", "u16" }, i4 = { "<i4", "i32" }, u4 = { "<I4" }, i8 = { "<i8", "i64" },
  f2 = { nil, "f16" }, f4 = { "<f", "f32" }, f8 = { "<d", "f64" },
}

-- NumPy pickles a dtype as dtype("f4", False, True), and its byte order as state.
local function numpy_dtype(machine, args)
  local row = NUMPY[args[1]] or {}
  return machine:object { name = "numpy.dtype", value = row[2], format = row[1], parts = { args },
    build = function(_, object, state)
      if type(state) ~= "table" or state[2] == ">" then object.format, object.value = nil, nil end
    end }
end

-- A number of NumPy: scalar(dtype, bytes); of another dtype an object.
local function numpy_scalar(machine, args)
  local dtype, bytes = machine.objects[args[1]] or {}, args[2]
  local fits = dtype.format and type(bytes) == "string" and #bytes == dtype.format:packsize()
  if not fits then
    return machine:object { name = "a scalar of NumPy", parts = { args } }
  end
  local number = string.unpack(dtype.format, bytes)
  if dtype.value == "bool" then return number ~= 0 end
  return number
end

-- The tensor of an array of NumPy: (version, shape, dtype, whether in Fortran's order, bytes).
local function build_array(machine, array, state)
  local dtype = machine.kinds[state] == "tuple" and machine.objects[state[3]] or {}
  local row, bytes = dtypes[dtype.value], state[5]
  if dtype.name ~= "numpy.dtype" or not row or type(bytes) ~= "string" then return end
  local shape, strides, n = integers(machine, state[2]), {}, 1
  local count = machine.counts[shape]
  for k = 1, count do
    local at = state[4] and k or count + 1 - k
    strides[at], n = n, n * math.max(shape[at], 0)
    if n > #bytes then damaged(machine, "is outside of its storage") end
  end
  if n * row.size ~= #bytes or row.name == "bool" and bytes:find "[^\0\1]" then
    damaged(machine, "has other bytes than its shape says")
  end
  array.value = c.io.strided(c.from_bytes(bytes, row.name), 0, shape, strides)
  if not array.value then damaged(machine, "is outside of its storage") end
  machine.locations[array.value], machine.kinds[array.value] = "cpu", "tensor"
end

local function numpy_array(machine, args)
  return machine:object { name = "an array of NumPy", parts = { args }, build = build_array }
end

-- An object that is a table of its fields, as argparse.Namespace.
local function fields_of(machine, args)
  local fields = machine:new "dict"
  return machine:object { name = "a Namespace", value = fields, parts = { args },
    build = function(_, _, state)
      if machine.kinds[state] ~= "dict" then return end
      for name, value in next, state do fields[name] = value end
    end }
end

-- What a class extends that is made of one container, or of nothing: set([1, 2]), Counter({}).
local function container(kind, of)
  return function(machine, args)
    local field = args[1]
    if machine.kinds[field] == of then return field end
    return machine:new(kind)
  end
end

-- Those of Python 2 are made of a list of pairs.
local function ordered_dict(machine, args)
  local dict, list = machine:new "dict", args[1]
  for _, pair in ipairs(machine.kinds[list] == "list" and list or {}) do
    if machine.counts[pair] ~= 2 then
      machine:fail "is damaged: a dict has a key without a value"
    end
    machine:set(dict, pair[1], pair[2])
  end
  return dict
end

-- Bytes are pickled as the text that they are in Latin-1.
local function encode(machine, args)
  local text, encoding = args[1], args[2]
  if type(text) ~= "string" or encoding ~= "latin1" or not utf8.len(text) then
    machine:fail "is damaged: bytes are not of Latin-1"
  end
  return (text:gsub(utf8.charpattern, function(char)
    local code = utf8.codepoint(char)
    if code > 255 then machine:fail "is damaged: bytes are not of Latin-1" end
    return string.char(code)
  end))
end

local function device(_, args)
  local kind, index = args[1], args[2]
  return index and ("%s:%s"):format(kind, index) or tostring(kind)
end

local function old_tensor(machine, args) return tensor_of(machine, args) end

local function parameter(machine, args)
  if machine.kinds[args[1]] ~= "tensor" then damaged(machine, "is none, and a parameter") end
  return args[1]
end

-- What is called, by its name in Python.
local CALLS <const> = {
  ["_codecs.encode"] = encode,
  ["argparse.Namespace"] = fields_of,
  ["builtins.bytearray"] = function(_, args) return args[1] or "" end,
  ["builtins.frozenset"] = container("list", "list"),
  ["builtins.set"] = container("list", "list"),
  ["collections.Counter"] = container("dict", "dict"),
  ["collections.OrderedDict"] = ordered_dict,
  ["collections.defaultdict"] = container("dict"),
  ["collections.deque"] = container("list", "list"),
  ["numpy._core.multiarray._reconstruct"] = numpy_array,
  ["numpy._core.multiarray.scalar"] = numpy_scalar,
  ["numpy.dtype"] = numpy_dtype,
  ["torch.Size"] = function(machine, args) return integers(machine, args[1]) end,
  ["torch._utils._rebuild_parameter"] = parameter,
  ["torch._utils._rebuild_parameter_with_state"] = parameter,
  ["torch._utils._rebuild_tensor"] = old_tensor, -- before 0.4
  ["torch._utils._rebuild_tensor_v2"] = function(machine, args)
    return tensor_of(machine, args, nil, args[7])
  end,
  ["torch._utils._rebuild_tensor_v3"] = function(machine, args)
    local token = args[7]
    if machine.kinds[token] == "name" then pickle_globals.check_dtype(machine, token) end
    if machine.kinds[token] ~= "name" or not token.value then damaged(machine, "has no dtype") end
    return tensor_of(machine, args, token.value, args[8])
  end,
  ["torch.autograd.variable.Variable"] = parameter,
  ["torch.device"] = device,
  ["torch.nn.parameter.Parameter"] = parameter,
  ["torch.serialization._get_layout"] = function(_, args) return args[1] end,
  ["types.SimpleNamespace"] = fields_of,
}

-- A tensor with fields in Python, or of a class of its own: (function, class, arguments, fields).
CALLS["torch._tensor._rebuild_from_type_v2"] = function(machine, args)
  local token = args[1]
  if machine.kinds[token] ~= "name" or not token.call or machine.kinds[args[3]] ~= "tuple" then
    damaged(machine, "is made by nothing")
  end
  return token.call(machine, args[3], machine.counts[args[3]])
end

-- Names whose calls make an object without doing anything: those of classes, by how they are
-- written, and these.
local HARMLESS <const> = { "%.%u%w*$", "^numpy%.", "^datetime%.", "^builtins%.complex$",
  "^builtins%.slice$", "^builtins%.range$", "^builtins%.object$" }

local OTHER_DTYPES <const> = { "^torch%.%l*int%d+$", "^torch%.float%d", "^torch%.complex%d",
  "^torch%.bfloat%d", "^torch%.%w+Storage$" }

local function matches(name, patterns)
  for _, pattern in ipairs(patterns) do
    if name:find(pattern) then return true end
  end
  return false
end

--- What a name stands for: { call =, value =, dtype =, is_storage =, is_harmless =, is_other = }:
--- `dtype` of a class of storages; `is_other`: ltrain does not have it.
function pickle_globals.find(_, name)
  local short = name:match "^torch%.(.*)$" or ""
  local storage = short:match "^(%w+)Storage$"
  local row = dtypes[(storage or short):lower()]
  if name == "torch.storage.UntypedStorage" then
    return { is_storage = true }
  elseif row and storage and row.method == storage:lower() then
    return { dtype = row.name, is_storage = true }
  elseif row and row.torch_name == short then
    return { value = row.name }
  end
  return { call = CALLS[name:gsub("^numpy%.core%.", "numpy._core.")],
    is_other = matches(name, OTHER_DTYPES), is_harmless = matches(name, HARMLESS) }
end

return pickle_globals
