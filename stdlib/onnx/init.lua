--- stdlib/onnx/init.lua: lt.onnx: models as ONNX files, for other programs that run them.
--
-- A model is run once, and the operations that ran become the nodes of the file: what depends on
-- Lua's `if` and `for` is as it was in that run. Weights keep the names of the state dict.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local exact = require "ltrain.core.exact"
local Graph = require "ltrain.onnx.Graph"
local Module = require "ltrain.nn.Module"
local proto = require "ltrain.onnx.proto"

local runtime <const> = c.runtime
-- The pair that the checkers and runtimes in use all read; a file of protobuf ends at 2 GiB.
local OPSET <const>, IR_VERSION <const>, LARGEST <const> = 17, 8, (1 << 31) - 1
local OPTIONS <const> = { input_names = true, output_names = true, dynamic_axes = true }

local onnx = {}

local rules = {}
for _, part in ipairs { "activations", "elementwise", "structured", "products", "recurrent" } do
  for op, rule in next, require("ltrain.onnx." .. part) do rules[op] = rule end
end

local function check_options(options)
  for key in next, options do
    if not OPTIONS[key] then
      errors.blame("onnx.export: unknown option %s%s", errors.show(key),
        errors.did_you_mean(key, { "input_names", "output_names", "dynamic_axes" }))
    end
  end
end

-- The tensors of a table or of one value, in order; raises where one is none.
local function tensors_of(value, what)
  if c.is_tensor(value) then return { value } end
  if type(value) ~= "table" or #value == 0 then
    errors.blame("onnx.export: %s must be a tensor or a list of tensors, got %s", what,
      errors.show(value))
  end
  for k, x in ipairs(value) do
    if not c.is_tensor(x) then
      errors.blame("onnx.export: %s[%d] must be a tensor, got %s", what, k, errors.show(x))
    end
  end
  return value
end

-- The calls that the model makes of the inputs, and its results.
local function run(model, inputs)
  local calls = {}
  local _ <close> = c.no_grad()
  local results
  do
    local _ <close> = runtime.trace(calls)
    results = table.pack(model(table.unpack(inputs)))
  end
  return calls, tensors_of(results.n == 1 and results[1] or results, "what the model returns")
end

-- The inputs again, with one more position in each named dim; and those sizes.
local function longer(inputs, axes)
  local list = {}
  for k, x in ipairs(inputs) do
    for dim in next, axes[k] do
      x = c.cat({ x, x:narrow(dim, 1, 1) }, dim)
    end
    list[k] = x
  end
  return list
end

-- Names by number for inputs or outputs.
local function names_of(list, given, word)
  local names = {}
  for k = 1, #list do
    names[k] = given and given[k] or #list == 1 and word or ("%s_%d"):format(word, k)
  end
  if given and #given ~= #list then
    errors.blame("onnx.export: %s_names has %d names for %d %ss", word, #given, #list, word)
  end
  return names
end

-- {[dim] = name} for each input, from {name = {[dim] = name}}.
local function axes_of(inputs, names, given)
  local axes, rest = {}, {}
  for name, dims in next, given or {} do rest[name] = dims end
  for k, x in ipairs(inputs) do
    axes[k] = rest[names[k]] or {}
    rest[names[k]] = nil
    for dim, name in next, axes[k] do
      if math.type(dim) ~= "integer" or dim < 1 or dim > x.ndim or type(name) ~= "string" then
        errors.blame("onnx.export: dynamic_axes.%s: must be {[dim] = 'name'}, dims from 1 to %d",
          names[k], x.ndim)
      end
    end
  end
  local unknown <const> = next(rest)
  if unknown then
    errors.blame("onnx.export: dynamic_axes: there is no input %s%s", errors.show(unknown),
      errors.did_you_mean(unknown, names))
  end
  return axes
end

local function refuse_paths(call)
  errors.blame("onnx.export: %s at %s: which operations run depends on the size of a named dim",
    call.op, call.line)
end

-- Numbers of a call that are others in the second trace; those of as_strided its rule looks at.
local function check_numbers(call, twin)
  for name, value in next, call.args do
    if type(value) == "number" and value ~= twin.args[name] and value == value
      and call.op ~= "as_strided" then
      errors.blame("onnx.export: %s at %s: %s = %s depends on the size of a named dim", call.op,
        call.line, name, value)
    end
  end
end

local function add_call(g, call, twin)
  local rule <const> = rules[call.op]
  if not rule then
    errors.blame("onnx.export: there is no ONNX form of %s, used at %s", call.op, call.line)
  end
  if not twin or twin.op ~= call.op then refuse_paths(call) end
  call.twin = twin
  check_numbers(call, twin)
  for k, name in ipairs { rule(g, call) } do g:bind(call.outputs[k], name, call) end
end

local function encode(model, inputs, options)
  local names <const> = names_of(inputs, options.input_names, "input")
  local axes <const> = axes_of(inputs, names, options.dynamic_axes)
  local calls, results = run(model, inputs)
  local twin_inputs <const> = longer(inputs, axes)
  local twins, twin_results = calls, results
  if options.dynamic_axes then twins, twin_results = run(model, twin_inputs) end
  local g <const> = Graph.new(class.is_a(model, Module) and model:state_dict() or {})
  local file = { name = "main", ir_version = IR_VERSION, inputs = {}, outputs = {} }
  for k, x in ipairs(inputs) do
    file.inputs[k] = g:open_input(x, names[k], axes[k], twin_inputs[k])
  end
  for k, call in ipairs(calls) do add_call(g, call, twins[k]) end
  if #twins > #calls then refuse_paths(twins[#calls + 1]) end
  for k, name in ipairs(names_of(results, options.output_names, "output")) do
    file.outputs[k] = g:close_output(results[k], name, twin_results[k])
  end
  file.nodes, file.initializers = g.nodes, g.initializers
  return proto.model(file, OPSET, c.version)
end

local to_modes <const> = { __close = function(modes)
  for module, training in next, modes do rawset(module, "training", training) end
end }

-- fn(model, ...) with all its parts in eval mode, which are then as they were.
local function in_eval_mode(fn, model, ...)
  if not class.is_a(model, Module) then return fn(model, ...) end
  local modes <close> = setmetatable({}, to_modes)
  for _, module in ipairs(model:modules()) do modes[module] = module.training end
  model:eval()
  local bytes <const> = fn(model, ...)
  return bytes
end

--- Write a model as an ONNX file (opset 17). `inputs`: a tensor or a list of them, with which the
--- model is run in eval mode; their sizes are those of the file but for `dynamic_axes`. Options:
--- `input_names`, `output_names` (lists; "input" and "output", numbered where there are several)
--- and `dynamic_axes` ({input = {[1] = "batch"}}: dims of inputs, from 1, that may have any size).
--- What draws random numbers or has no ONNX form is an error that names its line.
function onnx.export(model, inputs, path, options)
  if not class.is_callable(model) then
    errors.blame("onnx.export: needs a model or a function, got %s", errors.show(model))
  end
  if type(path) ~= "string" then
    errors.blame("onnx.export: path must be text, got %s", errors.show(path))
  end
  options = options or {}
  check_options(options)
  inputs = tensors_of(inputs, "inputs")
  local bytes <const> = in_eval_mode(encode, model, inputs, options)
  if #bytes > LARGEST then
    errors.blame("onnx.export: the file would have %d bytes: one may have %d", #bytes, LARGEST)
  end
  c.io.write_file(path, bytes)
end

return exact.all(onnx, "onnx")
