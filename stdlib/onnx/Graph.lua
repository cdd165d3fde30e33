-- stdlib/onnx/Graph.lua: the graph of an ONNX file while it is made: names of values, constants and
-- nodes.

local c = require "ltrain.c"
local Sizes = require "ltrain.onnx.Sizes"
local errors = require "ltrain.core.errors"
local arange_inputs = require "ltrain.onnx.arange_inputs"
local proto = require "ltrain.onnx.proto"

local identity <const> = c.runtime.identity
-- What a script writes for operations that have no name in it.
local SYNTAX <const> = { as_strided = "indexing", index_get = "indexing" }
local Graph = {}
Graph.__index = Graph

-- Equal for tensors that are the same elements of the same memory; and that memory.
local function place_of(x)
  local memory <const>, offset = identity(x)
  return ("%d %d %s %s"):format(memory, offset, table.concat(x.shape, ","),
    table.concat(x:stride(), ",")), memory
end

--- A graph without nodes. `state`: parameters and buffers by name; `runs`: those of traces.lua.
function Graph.new(state, runs)
  local known = {}
  for name, x in next, state do
    if type(x) == "userdata" then known[place_of(x)] = name end
  end
  local g <const> = setmetatable({ known = known, names = {}, memory = {}, used = {}, nodes = {},
    stored = {}, constants = {}, absent = {}, runs = runs, count = 0 }, Graph)
  g.extents = Sizes.new(g, runs)
  return g
end

--- Raises: what is wrong with a call of the script.
function Graph.refuse(_, call, message, ...)
  local op <const> = call.composite or call.op
  errors.blame("onnx.export: %s at %s: %s", SYNTAX[op] or op, call.line, message:format(...))
end

-- Raises: something of the call is another for another size of a named dim.
local function refuse_size(self, call, tuple, what, ...)
  self:refuse(call, "%s depends on the size of '%s': leave it out of dynamic_axes",
    what:format(...), self.runs[Sizes.changed(tuple)].name)
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
  if not proto.DTYPES[x.dtype] then
    errors.blame("onnx.export: ONNX files cannot store %s", x.dtype)
  end
  local name <const> = self:fresh(wish)
  self.stored[name] = x:detach()
  return name
end

--- The name of a value; a tensor that no call has made is a constant of the file.
function Graph:name_of(x)
  local place <const>, memory = place_of(x)
  if not self.names[place] then
    if self.memory[memory] then
      errors.blame("onnx.export: a view %s of a computed value was not seen as it was made",
        errors.show_shape(x))
    end
    self.names[place] = store(self, self.known[place] or "constant", x)
  end
  return self.names[place]
end

--- The name of a tensor that has one already; nil.
function Graph:known_name(x)
  return x and self.names[place_of(x)] or nil
end

--- From here on the tensor is what `name` names. `call` made it or wrote it.
function Graph:bind(x, name, call)
  local place, memory = place_of(x)
  if self.names[place] and call and call.view then return end -- the same view again
  if self.names[place] and self.memory[memory] ~= place then
    self:refuse(call, "writes into memory that other tensors share, and a file has values, not "
      .. "memory: make a new tensor instead")
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
  self.nodes[#self.nodes + 1] = { op, inputs, outputs, attributes }
  return table.unpack(outputs)
end

--- The value in another dtype.
function Graph:cast(name, from, to)
  if from == to then return name end
  return self:add("Cast", { name }, { to = proto.DTYPES[to] })
end

-- The shape of a tensor of a call in all runs: list "inputs" or "outputs", number k.
local function shapes_of(call, list, k)
  local shapes = {}
  for r, run in ipairs(call.runs) do shapes[r] = run[list][k].shape end
  return shapes
end

-- A tensor that no call has made has to be the same in all runs, or to count.
local function check_constant(self, call, k)
  local x <const> = call.inputs[k]
  local place <const>, memory = place_of(x)
  if self.names[place] or self.memory[memory] then return end
  local tuple <const> = self.extents:tuple(function(_, r)
    local other <const> = call.runs[r].inputs[k]
    return place_of(other) == place
      or table.concat(x.shape, " ") == table.concat(other.shape, " ") and x:equal(other)
  end)
  tuple[1] = true
  if not Sizes.changed(tuple) then return end
  self.names[place] = arange_inputs(self, call, k)
  if not self.names[place] then
    refuse_size(self, call, tuple, "a constant %s", errors.show_shape(x))
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

--- Result k of a call is what `name` names; without a name there is no form of it.
function Graph:result(call, k, name)
  local x <const> = call.outputs[k]
  if not x then return end
  if not name then
    name = self:fresh "absent"
    self.absent[name] = call
  end
  self:bind(x, name, call)
  self.extents:note(name, shapes_of(call, "outputs", k))
end

-- ValueInfo of a tensor with names for some dims.
local function value_info(name, x, named)
  local shape = table.move(x.shape, 1, #x.shape, 1, {})
  for dim, dim_name in next, named do shape[dim] = dim_name end
  return proto.value(name, x.dtype, shape)
end

--- Input k of the file; `named`: names of those dims that may have any size.
function Graph:open_input(k, wish, named)
  local name <const>, x, shapes = self:fresh(wish), self.runs[1].inputs[k], {}
  self:bind(x, name)
  for r, run in ipairs(self.runs) do shapes[r] = run.inputs[k].shape end
  self.extents:note(name, shapes, named)
  return value_info(name, x, named)
end

--- Result k of the file, as `wish`; `given`: names of dims that depend on those of inputs.
function Graph:close_output(k, wish, given)
  local name <const>, x, named = self:fresh(wish), self.runs[1].results[k], {}
  self.nodes[#self.nodes + 1] = { "Identity", { self:name_of(x) }, { name } }
  for dim = 1, x.ndim do
    local tuple <const> = self.extents:tuple(function(run) return run.results[k].shape[dim] end)
    if Sizes.changed(tuple) then
      named[dim] = given[dim] or self.extents:dim_name(tuple) or ("%s_%d"):format(name, dim)
    end
  end
  return value_info(name, x, named)
end

local function shown(value)
  if type(value) == "table" then return "{" .. table.concat(value, ", ") .. "}" end
  return math.type(value) == "float" and ("%.17g"):format(value) or tostring(value)
end

--- fn(run) of a call, a number or a list, which has to be the same in all runs.
function Graph:fixed(call, what, fn)
  local tuple <const> = self.extents:tuple(function(_, r) return shown(fn(call.runs[r])) end)
  if Sizes.changed(tuple) then refuse_size(self, call, tuple, "%s = %s", what, tuple[1]) end
  return fn(call.runs[1])
end

--- A number of a call, fn(run), as a value without dims.
function Graph:number(call, dtype, fn)
  local tuple <const> = self.extents:tuple(function(_, r) return fn(call.runs[r]) end)
  if not Sizes.changed(tuple) then return self:constant(tuple[1], dtype) end
  local sizes = {}
  for r, number in ipairs(tuple) do sizes[r] = math.tointeger(number) end
  local value <const> = #sizes == #tuple and self.extents:value(sizes, call)
  if not value then refuse_size(self, call, tuple, "the number %s", tostring(tuple[1])) end
  return self:cast(self:add("Squeeze", { value }), "i64", dtype)
end

--- A list of sizes, fn(run, number of the run) of a call, as a value: a constant where it is the
--- same in all runs. `what`: "a size", for the error.
function Graph:sizes(call, fn, what)
  local tuples, constant = {}, true
  local lists <const> = self.extents:tuple(function(_, r) return fn(call.runs[r], r) end)
  for k = 1, #lists[1] do
    tuples[k] = self.extents:tuple(function(_, r) return lists[r][k] end)
    constant = constant and not Sizes.changed(tuples[k])
  end
  if constant then return self:constant(lists[1]) end
  local parts = {}
  for k, tuple in ipairs(tuples) do
    parts[k] = self.extents:value(tuple, call)
    if not parts[k] then refuse_size(self, call, tuple, "%s of %d", what or "a size", tuple[1]) end
  end
  return self:add("Concat", parts, { axis = 0 })
end

--- The shape of the first result of a call, as a value.
function Graph:shape(call)
  return self:sizes(call, function(run) return run.outputs[1].shape end)
end

--- The nodes and initializers that results of the file are computed from.
function Graph:finish(outputs)
  local needed, nodes, initializers, kept = {}, {}, {}, {}
  for _, name in ipairs(outputs) do needed[name] = true end
  for k = #self.nodes, 1, -1 do
    local op <const>, inputs, results, attributes = table.unpack(self.nodes[k])
    local wanted = false
    for _, name in ipairs(results) do wanted = wanted or needed[name] end
    for _, name in ipairs(wanted and inputs or {}) do
      if self.absent[name] then
        self:refuse(self.absent[name], "there is no ONNX form of it: compute it outside of the "
          .. "model that is exported")
      end
      if self.stored[name] and not needed[name] then
        initializers[#initializers + 1] = proto.tensor(name, self.stored[name]:to "cpu")
      end
      needed[name] = true
    end
    if wanted then kept[#kept + 1] = proto.node(op, inputs, results, attributes) end
  end
  for k = #kept, 1, -1 do nodes[#nodes + 1] = kept[k] end
  return nodes, initializers
end

return Graph
