-- stdlib/onnx/Graph.lua: the graph of an ONNX file while it is made: names of values, constants and
-- nodes.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local proto = require "ltrain.onnx.proto"

local identity <const> = c.runtime.identity
local Graph = {}
Graph.__index = Graph

-- Equal for tensors that are the same elements of the same memory; and that memory.
local function place_of(x)
  local memory <const>, offset = identity(x)
  return ("%d %d %s %s"):format(memory, offset, table.concat(x.shape, ","),
    table.concat(x:stride(), ",")), memory
end

--- A graph without nodes. `state`: parameters and buffers by name.
function Graph.new(state)
  local known = {}
  for name, x in next, state do known[place_of(x)] = name end
  return setmetatable({ known = known, names = {}, memory = {}, used = {}, nodes = {},
                        initializers = {}, constants = {}, dims = {}, count = 0 }, Graph)
end

-- A name that no other value has.
function Graph:fresh(wish)
  local name, n = wish, 1
  while self.used[name] do
    n = n + 1
    name = ("%s_%d"):format(wish, n)
  end
  self.used[name] = true
  return name
end

-- A tensor of the file.
local function store(self, wish, x)
  if not proto.DTYPES[x.dtype] then errors.blame("onnx.export: no file holds %s", x.dtype) end
  local name <const> = self:fresh(wish)
  self.initializers[#self.initializers + 1] = proto.tensor(name, x:detach():to "cpu")
  return name
end

--- The name of a value; a tensor that no call has made is a constant of the file.
function Graph:name_of(x)
  local place <const>, memory = place_of(x)
  if not self.names[place] then
    if self.memory[memory] then
      errors.blame("onnx.export: a view %s of a computed value was made untraced",
        errors.show_shape(x))
    end
    self.names[place] = store(self, self.known[place] or "constant", x)
  end
  return self.names[place]
end

--- From here on the tensor is what `name` names. `call` made it or wrote it.
function Graph:bind(x, name, call)
  local place, memory = place_of(x)
  if self.names[place] and call and call.view then return end -- the same view again
  if self.names[place] and self.memory[memory] ~= place then
    errors.blame("onnx.export: %s at %s writes into memory that other tensors show too: a file " ..
      "has values, not memory", call.op, call.line)
  end
  self.names[place] = name
  if self.memory[memory] and self.memory[memory] ~= place then place = "several" end
  self.memory[memory] = place
end

--- A constant: a number, or a list (i64 unless said otherwise). Equal ones are stored once.
function Graph:constant(value, dtype)
  dtype = dtype or "i64"
  local list <const> = type(value) == "table"
  local key = ("%s %s %s"):format(dtype, list,
    list and table.concat(value, " ") or ("%.17g"):format(value))
  if not self.constants[key] then
    local x = list and #value == 0 and c.zeros(0, { dtype = dtype })
      or c.tensor(value, { dtype = dtype })
    self.constants[key] = store(self, "constant", x)
  end
  return self.constants[key]
end

--- A node of one result (or `n`); returns the names of its results. Absent inputs are "", and left
--- out at the end.
function Graph:add(op, inputs, attributes, n)
  local outputs = {}
  while inputs[#inputs] == "" do inputs[#inputs] = nil end
  for k = 1, n or 1 do
    self.count = self.count + 1
    outputs[k] = self:fresh(("%s_%d"):format(op:lower(), self.count))
  end
  self.nodes[#self.nodes + 1] = proto.node(op, inputs, outputs, attributes)
  return table.unpack(outputs)
end

--- The value in another dtype.
function Graph:cast(name, from, to)
  if from == to then return name end
  return self:add("Cast", { name }, { to = proto.DTYPES[to] })
end

-- Raises where a tensor that no call has made is another one in the second trace.
local function check_constant(self, call, k)
  local x <const>, other = call.inputs[k], call.twin.inputs[k]
  local place <const>, memory = place_of(x)
  if self.names[place] or self.memory[memory] or place == place_of(other) then return end
  if table.concat(x.shape, " ") ~= table.concat(other.shape, " ") or not x:equal(other) then
    errors.blame("onnx.export: %s at %s: a constant %s depends on the size of a named dim", call.op,
      call.line, errors.show_shape(x))
  end
end

--- Input k of a call, converted to `dtype` where that is given.
function Graph:input(call, k, dtype)
  local x <const> = call.inputs[k]
  if not x then return nil end
  check_constant(self, call, k)
  local name <const> = self:name_of(x)
  return dtype and self:cast(name, x.dtype, dtype) or name
end

-- ValueInfo of a tensor with names for some dims.
local function value_info(name, x, named)
  local shape = table.move(x.shape, 1, #x.shape, 1, {})
  for dim, dim_name in next, named do shape[dim] = dim_name end
  return proto.value(name, x.dtype, shape)
end

--- An input of the file; `named`: names of those dims that may have any size, `other`: the input
--- of the second trace.
function Graph:open_input(x, wish, named, other)
  local name <const> = self:fresh(wish)
  self:bind(x, name)
  for dim in next, named do
    self.dims[#self.dims + 1] = { input = name, dim = dim, name = named[dim], first = x.shape[dim],
                                  second = other.shape[dim] }
  end
  return value_info(name, x, named)
end

--- A result of the file, as `wish`.
function Graph:close_output(x, wish, other)
  local name <const> = self:fresh(wish)
  self.nodes[#self.nodes + 1] = proto.node("Identity", { self:name_of(x) }, { name })
  local named = {}
  for dim, a in ipairs(x.shape) do
    local b <const> = other.shape[dim]
    for _, d in ipairs(self.dims) do
      if a == d.first and b == d.second and a ~= b then named[dim] = d.name end
    end
    if a ~= b and not named[dim] then named[dim] = ("%s_%d"):format(name, dim) end
  end
  return value_info(name, x, named)
end

-- The size of a named dim, as a vector of one.
local function dynamic(self, d)
  if not d.value then
    local shape <const> = self:add("Shape", { d.input })
    d.value = self:add("Gather", { shape, self:constant({ d.dim - 1 }) }, { axis = 0 })
  end
  return d.value
end

-- What size a, which is b in the second trace, is made of: a dim of the inputs and a factor.
local function made_of(self, a, b, call)
  for _, d in ipairs(self.dims) do
    if a * d.second == b * d.first and a % d.first == 0 then return d, a // d.first end
  end
  errors.blame("onnx.export: %s at %s: a size of %d depends on a named dim, of which it is no " ..
    "multiple", call.op, call.line, a)
end

-- Whether two traces agree.
local function are_equal(list, other)
  for k, a in ipairs(list) do
    if a ~= other[k] then return false end
  end
  return true
end

--- A list of sizes as a value: a constant, where both traces agree.
function Graph:sizes(call, list, other)
  if are_equal(list, other) then return self:constant(list) end
  local parts = {}
  for k, a in ipairs(list) do
    if a == other[k] then
      parts[k] = self:constant { a }
    else
      local d <const>, factor = made_of(self, a, other[k], call)
      parts[k] = dynamic(self, d)
      if factor ~= 1 then
        parts[k] = self:add("Mul", { parts[k], self:constant { factor } })
      end
    end
  end
  return self:add("Concat", parts, { axis = 0 })
end

return Graph
