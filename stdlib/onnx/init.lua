--- stdlib/onnx/init.lua: lt.onnx: models as ONNX files, for other programs that run them.
--
-- The model is run, and its operations become the nodes of the file; Lua's `if` and `for` are fixed
-- as they were in that run. Weights keep the names of the state dict.

local Graph = require "ltrain.onnx.Graph"
local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local proto = require "ltrain.onnx.proto"
local strict_arity = require "ltrain.core.strict_arity"
local traces = require "ltrain.onnx.traces"

-- The pair that the checkers and runtimes in use all read; a file of protobuf ends at 2 GiB.
local OPSET <const>, IR_VERSION <const>, LARGEST <const> = 17, 8, (1 << 31) - 1
local OPTIONS <const> = { input_names = true, output_names = true, dynamic_axes = true }

local onnx = {}

local rules = {}
for _, part in ipairs { "activations", "elementwise", "structured", "products", "recurrent",
                    "resizing" } do
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

-- The tensors of a table or of one value, in order; raises where a part is none.
local function tensors_of(value)
  if c.is_tensor(value) then return { value } end
  if type(value) ~= "table" or #value == 0 then
    errors.blame("onnx.export: inputs must be a tensor or a list of tensors, got %s",
      errors.show(value))
  end
  for k, x in ipairs(value) do
    if not c.is_tensor(x) then
      errors.blame("onnx.export: inputs[%d] must be a tensor, got %s", k, errors.show(x))
    end
  end
  return value
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

-- {[dim] = name} for each of a list, from {name = {[dim] = name}}; those of `given` that are used
-- are taken out of `rest`.
local function axes_of(list, names, given, rest)
  local axes = {}
  for k, x in ipairs(list) do
    axes[k] = given and given[names[k]] or {}
    rest[names[k]] = nil
    for dim, name in next, axes[k] do
      if math.type(dim) ~= "integer" or dim < 1 or dim > x.ndim or type(name) ~= "string" then
        errors.blame("onnx.export: dynamic_axes.%s: must be {[dim] = 'name'}, dims from 1 to %d",
          names[k], x.ndim)
      end
    end
  end
  return axes
end

local function check_axes(rest, names)
  local unknown <const> = next(rest)
  if unknown then
    errors.blame("onnx.export: dynamic_axes: there is no input or output %s%s",
      errors.show(unknown), errors.did_you_mean(unknown, names))
  end
end

-- Call i of all runs. Its `args` are those that are the same in all runs; a rule for which others
-- may differ reads them from `runs`.
local function joined_call(g, i)
  local call = {}
  for key, value in next, g.runs[1].calls[i] do call[key] = value end
  call.runs = g.extents:tuple(function(run) return run.calls[i] end)
  call.args = setmetatable({}, { __index = function(_, name)
    return g:fixed(call, name, function(run) return run.args[name] end)
  end })
  return call
end

local function add_call(g, i)
  local call <const> = joined_call(g, i)
  local rule <const> = rules[call.op]
  local names <const> = rule and { rule(g, call) } or {}
  for k = 1, #call.outputs do g:result(call, k, names[k]) end
end

local function encode(model, inputs, options)
  local names <const>, rest = names_of(inputs, options.input_names, "input"), {}
  for name in next, options.dynamic_axes or {} do rest[name] = true end
  local axes <const> = axes_of(inputs, names, options.dynamic_axes, rest)
  local runs <const> = traces.of(model, inputs, axes)
  local results <const> = runs[1].results
  local out_names <const> = names_of(results, options.output_names, "output")
  local out_axes <const> = axes_of(results, out_names, options.dynamic_axes, rest)
  check_axes(rest, table.move(out_names, 1, #out_names, #names + 1, table.move(names, 1, #names, 1,
    {})))
  local g <const> = Graph.new(class.is_a(model, Module) and model:state_dict() or {}, runs)
  local file = { name = "main", ir_version = IR_VERSION, inputs = {}, outputs = {} }
  for k, name in ipairs(names) do file.inputs[k] = g:open_input(k, name, axes[k]) end
  for i = 1, #runs[1].calls do add_call(g, i) end
  for k, name in ipairs(out_names) do
    file.outputs[k] = g:close_output(k, name, out_axes[k])
  end
  file.nodes, file.initializers = g:finish(out_names)
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
--- model is run in evaluation mode; sizes in the file are fixed, except those in `dynamic_axes`.
--- Options: `input_names`, `output_names` (lists; "input" and "output" by default, numbered if
--- there are several) and `dynamic_axes` ({input = {[1] = "batch"}}: dims of inputs, from 1, that
--- may have any size, and names for the dims of outputs that depend on them; the model is also run
--- at other sizes). Operations that draw random numbers or that ONNX cannot express are errors that
--- name their line. Returns true, or nil and the reason if the file cannot be written.
function onnx.export(model, inputs, path, options)
  if not class.is_callable(model) then
    errors.blame("onnx.export: needs a model or a function, got %s", errors.show(model))
  end
  if type(path) ~= "string" then
    errors.blame("onnx.export: path must be text, got %s", errors.show(path))
  end
  options = options or {}
  check_options(options)
  inputs = tensors_of(inputs)
  local bytes <const> = in_eval_mode(encode, model, inputs, options)
  if #bytes > LARGEST then
    errors.blame("onnx.export: the file would have %d bytes: one may have %d", #bytes, LARGEST)
  end
  local done, message = c.io.write_file(path, bytes, "onnx.export")
  return done, message
end

return strict_arity.all(onnx, "onnx")
