-- stdlib/onnx/traces.lua: traces the operations of a model at several sizes of the named dims, and
-- finds what depends on them.
--
-- What depends on a named dim is found by comparing runs: the first, and two for each name with
-- that dim alone at other sizes. All must make the same calls, in the same order.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local trace_leaf = require "ltrain.ops.trace_leaf"

local runtime <const> = c.runtime
-- By how much a dim grows: by more where the model takes multiples only; -1: where it is as large
-- as the model allows.
local STEPS <const> = { 1, -1, 2, 4, 8, 16, 32 }

local traces = {}

-- Tensors of lists within lists, in order; raises for what is none.
local function flattened(value, list)
  if c.is_tensor(value) then
    list[#list + 1] = value
  elseif type(value) == "table" and #value > 0 then
    for _, part in ipairs(value) do flattened(part, list) end
  else
    errors.blame("onnx.export: what the model returns must be tensors or lists of them, got %s",
      errors.show(value))
  end
  return list
end

-- {calls, results, inputs, sizes = {[name] = size}} of one run.
local function run(model, inputs, sizes)
  local calls <const> = {}
  local results
  local _ <close> = c.no_grad()
  do
    local _ <close> = runtime.trace(calls)
    local _ <close> = trace_leaf.open(calls)
    results = table.pack(model(table.unpack(inputs)))
  end
  while results.n > 1 and results[results.n] == nil do results.n = results.n - 1 end
  local list = {}
  for k = 1, math.max(results.n, 1) do flattened(results[k], list) end
  return { calls = calls, results = list, inputs = inputs, sizes = sizes }
end

-- x with `size` positions along a dim: its first ones, or all of them again and again.
local function resized(x, dim, size)
  while x.shape[dim] < size do
    x = c.cat({ x, x:narrow(dim, 1, math.min(x.shape[dim], size - x.shape[dim])) }, dim)
  end
  return x.shape[dim] > size and x:narrow(dim, 1, size) or x
end

-- The inputs with these sizes of the named dims.
local function inputs_of(inputs, axes, sizes)
  local list = {}
  for k, x in ipairs(inputs) do
    for dim, name in next, axes[k] do x = resized(x, dim, sizes[name]) end
    list[k] = x
  end
  return list
end

-- Names in order, and the sizes that the inputs have.
local function sizes_of(inputs, axes)
  local names, sizes = {}, {}
  for k, x in ipairs(inputs) do
    for dim = 1, x.ndim do
      local name <const> = axes[k][dim]
      if name and not sizes[name] then
        names[#names + 1], sizes[name] = name, x.shape[dim]
      elseif name and sizes[name] ~= x.shape[dim] then
        errors.blame("onnx.export: dynamic_axes: '%s' names dims of %d and of %d", name,
          sizes[name], x.shape[dim])
      end
      if name and x.shape[dim] == 0 then
        errors.blame("onnx.export: dynamic_axes: '%s' names a dim of size 0: give a sample of "
          .. "one or more", name)
      end
    end
  end
  return names, sizes
end

-- The call of `a` whose like is not in `b`; nil where both made the same.
local function fork_of(a, b)
  for k = 1, math.max(#a.calls, #b.calls) do
    local one <const>, other = a.calls[k], b.calls[k]
    if not one or not other or one.op ~= other.op or #one.inputs ~= #other.inputs then
      return one or other
    end
  end
  if #a.results ~= #b.results then return a.calls[#a.calls] end
end

-- The run with another size of one name; nil and why there is none.
local function run_like(first, model, inputs, axes, name, size)
  local sizes = {}
  for each, n in next, first.sizes do sizes[each] = n end
  sizes[name] = size
  local ok <const>, other = pcall(run, model, inputs_of(inputs, axes, sizes), sizes)
  if not ok then
    return nil, ("with %s = %d instead of %d the model fails: %s"):format(name, size,
      first.sizes[name], other)
  end
  local fork <const> = fork_of(first, other)
  if fork then
    return nil, ("%s at %s: which operations run depends on the size of '%s': leave it out of "
      .. "dynamic_axes, or write the model without if and for over it"):format(
        fork.composite or fork.op, fork.line, name)
  end
  other.name = name
  return other
end

-- Two runs with other sizes of one name: the next one, by which a size differs from a multiple, and
-- one far off, by which windows with a stride are more.
local function varied(first, model, inputs, axes, name)
  local from <const>, reason = first.sizes[name], nil
  local function try(size)
    if size < 2 then return nil end
    local run_of_size <const>, why = run_like(first, model, inputs, axes, name, size)
    reason = reason or why
    return run_of_size
  end
  for _, step in ipairs(STEPS) do
    local near <const> = try(from + step)
    for _, size in ipairs(near and { step > 0 and 2 * from or from // 2, from + 2 * step } or {}) do
      local far <const> = size ~= from + step and try(size)
      if far then return { near, far } end
    end
  end
  errors.blame("onnx.export: %s", reason)
end

-- A run whose named dims are neither 1, which broadcasts, nor the shortest.
local function run_first(model, inputs, axes, sizes)
  local grown = {}
  for name, size in next, sizes do grown[name] = size < 3 and 4 or size end
  local ok <const>, first = pcall(run, model, inputs_of(inputs, axes, grown), grown)
  return ok and first or run(model, inputs, sizes)
end

--- The runs of a model: lists of {calls, results, inputs, sizes}, all but the first with the `name`
--- whose size they change. `axes`: names of dims by input.
function traces.of(model, inputs, axes)
  local names <const>, sizes = sizes_of(inputs, axes)
  local runs <const> = { run_first(model, inputs, axes, sizes) }
  for _, name in ipairs(names) do
    table.move(varied(runs[1], model, inputs, axes, name), 1, 2, #runs + 1, runs)
  end
  return runs
end

return traces
