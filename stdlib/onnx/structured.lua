-- stdlib/onnx/structured.lua: ONNX nodes for views, reductions, norms, choices and joins.

local strided = require "ltrain.onnx.strided"

local rules = {}

local function zero_based(dims)
  local list = {}
  for k, dim in ipairs(dims) do list[k] = dim - 1 end
  return list
end

-- The same value.
local function same(g, call) return g:input(call, 1) end
rules.clone, rules.transfer = same, same

function rules.cast(g, call)
  return g:cast(g:input(call, 1), call.inputs[1].dtype, call.outputs[1].dtype)
end

-- Views.
local function reshape(g, call)
  return g:add("Reshape", { g:input(call, 1), g:shape(call) }, { allowzero = 1 })
end
rules.view, rules.reshape = reshape, reshape

function rules.permute(g, call)
  return g:add("Transpose", { g:input(call, 1) }, { perm = zero_based(call.args.dims) })
end

function rules.expand(g, call)
  return g:add("Expand", { g:input(call, 1), g:shape(call) })
end
rules.broadcast_to = rules.expand

for op, rule in next, strided do rules[op] = rule end

-- Makers.
function rules.full(g, call)
  local out <const> = call.outputs[1]
  return g:add("Expand", { g:constant(call.args.fill_value or 0, out.dtype), g:shape(call) })
end
rules.empty = rules.full

-- Writes: the result is what the tensor is from here on.
function rules.copy(g, call)
  return g:add("Expand", { g:input(call, 2, call.outputs[1].dtype), g:shape(call) })
end

function rules.fill(g, call)
  return g:add("Expand", { g:constant(call.args.value, call.outputs[1].dtype), g:shape(call) })
end

-- Reductions.
local function reduce(node, g, x, dims, keepdim)
  local keepdims <const>, axes = keepdim and 1 or 0, #dims > 0 and zero_based(dims) or nil
  if node == "ReduceSum" then -- the one whose axes are an input in opset 17
    return g:add(node, { x, axes and g:constant(axes) }, { keepdims = keepdims })
  end
  return g:add(node, { x }, { axes = axes, keepdims = keepdims })
end

local REDUCTIONS <const> = { sum = "ReduceSum", mean = "ReduceMean", prod = "ReduceProd",
                             amax = "ReduceMax", amin = "ReduceMin" }
for op, node in next, REDUCTIONS do
  rules[op] = function(g, call)
    local x <const> = g:input(call, 1, call.outputs[1].dtype)
    return reduce(node, g, x, call.args.dims, call.args.keepdim)
  end
end

-- Of bools, as numbers: the largest or the smallest.
for op, node in next, { any = "ReduceMax", all = "ReduceMin" } do
  rules[op] = function(g, call)
    local x <const> = g:cast(g:input(call, 1, "bool"), "bool", "i32")
    return g:cast(reduce(node, g, x, call.args.dims, call.args.keepdim), "i32", "bool")
  end
end

-- The position of the extreme, along a dim or in the flattened tensor.
local function position(node)
  return function(g, call)
    local dim <const>, x = call.args.dim, g:input(call, 1)
    if dim then
      return g:add(node, { x }, { axis = dim - 1, keepdims = call.args.keepdim and 1 or 0 })
    end
    x = g:add("Reshape", { x, g:constant { -1 } })
    local found <const> = g:add(node, { x }, { axis = 0, keepdims = 0 })
    return g:add("Reshape", { found, g:shape(call) })
  end
end
rules.argmax, rules.argmin = position "ArgMax", position "ArgMin"

for op, node in next, { max = "Max", min = "Min" } do
  local at <const> = position("Arg" .. node)
  rules[op] = function(g, call)
    local dim <const> = call.args.dim
    local value <const> = reduce("Reduce" .. node, g, g:input(call, 1), { dim }, call.args.keepdim)
    return value, at(g, call)
  end
end

function rules.cumsum(g, call)
  local x <const> = g:input(call, 1, call.outputs[1].dtype)
  return g:add("CumSum", { x, g:constant(call.args.dim - 1) })
end

-- Norms.
function rules.layer_norm(g, call)
  local shape <const>, dtype = call.args.normalized_shape, call.inputs[1].dtype
  local weight = g:input(call, 2, dtype)
  if not weight then
    weight = g:add("Expand", { g:constant(1, dtype), g:constant(shape) })
  end
  return g:add("LayerNormalization", { g:input(call, 1), weight, g:input(call, 3, dtype) },
    { axis = -#shape, epsilon = call.args.eps })
end

-- A vector by channel as [1, C, 1, ...]; nil stays nil.
local function by_channel(g, name, ndim)
  if not name then return nil end
  local shape = { 1, -1 }
  for k = 3, ndim do shape[k] = 1 end
  return g:add("Reshape", { name, g:constant(shape) })
end

-- x less its mean over `dims`, divided by the root of its variance; and these.
local function normalized(g, x, dims, eps)
  local mean <const> = reduce("ReduceMean", g, x, dims, true)
  local name <const> = g:add("Sub", { x, mean })
  local variance <const> = reduce("ReduceMean", g, g:add("Mul", { name, name }), dims, true)
  local root <const> = g:add("Sqrt", { g:add("Add", { variance, eps }) })
  return g:add("Div", { name, root }), mean, variance
end

local function scaled(g, name, weight, bias)
  if weight then name = g:add("Mul", { name, weight }) end
  if bias then name = g:add("Add", { name, bias }) end
  return name
end

-- Half precision is computed in f32, as here.
function rules.group_norm(g, call)
  local x <const>, dtype = call.inputs[1], call.inputs[1].dtype
  local wide <const> = dtype == "f64" and "f64" or "f32"
  local rows <const> = g:add("Reshape", { g:input(call, 1, wide),
                                          g:constant { 0, call.args.num_groups, -1 } })
  local name = normalized(g, rows, { 3 }, g:constant(call.args.eps, wide))
  name = g:add("Reshape", { name, g:shape(call) }, { allowzero = 1 })
  name = scaled(g, name, by_channel(g, g:input(call, 2, wide), x.ndim),
    by_channel(g, g:input(call, 3, wide), x.ndim))
  return g:cast(name, wide, dtype)
end

function rules.batch_norm(g, call)
  local x <const>, dtype = call.inputs[1], call.inputs[1].dtype
  local dims = { 1 }
  for dim = 3, x.ndim do dims[#dims + 1] = dim end
  local name = g:input(call, 1)
  local function channel(k) return by_channel(g, g:input(call, k, dtype), x.ndim) end
  local mean, variance = channel(4), channel(5)
  local eps <const> = g:constant(call.args.eps, dtype)
  if mean then
    local root <const> = g:add("Sqrt", { g:add("Add", { variance, eps }) })
    name = g:add("Div", { g:add("Sub", { name, mean }), root })
  else
    name, mean, variance = normalized(g, name, dims, eps)
  end
  local function vector(of) return g:add("Reshape", { of, g:constant { -1 } }) end
  return scaled(g, name, channel(2), channel(3)), vector(mean), vector(variance)
end

for op, node in next, { softmax = "Softmax", log_softmax = "LogSoftmax" } do
  rules[op] = function(g, call)
    local x <const> = g:input(call, 1, call.outputs[1].dtype)
    return g:add(node, { x }, { axis = call.args.dim - 1 })
  end
end

-- Choosing elements.
function rules.index_select(g, call)
  return g:add("Gather", { g:input(call, 1), g:input(call, 2) }, { axis = call.args.dim - 1 })
end
function rules.embedding(g, call)
  return g:add("Gather", { g:input(call, 1), g:input(call, 2) }, { axis = 0 })
end

-- [B, N]: which of n ids are of which bag, by where the bags begin: by how many have begun.
local function members(g, offsets, ids, dtype)
  local function counted(name)
    local n <const> = g:add("Reshape", { g:add("Shape", { name }), g:constant {} })
    return g:add("Range", { g:constant(0), n, g:constant(1) })
  end
  local columns <const> = g:add("Unsqueeze", { offsets, g:constant { 1 } })
  local begun <const> = g:add("GreaterOrEqual", { counted(ids), columns })
  local bags <const> = g:add("Sub", { g:add("ReduceSum", { g:cast(begun, "bool", "i64"),
    g:constant { 0 } }, { keepdims = 0 }), g:constant(1) })
  local own <const> = g:add("Unsqueeze", { counted(offsets), g:constant { 1 } })
  return g:cast(g:add("Equal", { bags, own }), "bool", dtype)
end

function rules.embedding_bag(g, call)
  local ids <const>, dtype, padding = g:input(call, 2, "i64"), call.outputs[1].dtype,
    call.args.padding_idx
  local rows <const> = g:add("Gather", { g:input(call, 1, dtype), ids }, { axis = 0 })
  local offsets <const>, factors = g:input(call, 3, "i64"), g:input(call, 4, dtype)
  local counts = g:add("Equal", { ids, padding and padding >= 0 and g:constant(padding) or ids })
  if padding and padding >= 0 then counts = g:add("Not", { counts }) end
  counts = g:cast(counts, "bool", dtype)
  local weights = factors and g:add("Mul", { counts, factors }) or counts
  local y
  if offsets then
    local of <const> = members(g, offsets, ids, dtype)
    y = g:add("MatMul", { g:add("Mul", { of, weights }), rows })
    counts = g:add("Mul", { of, counts })
  else
    local column <const> = g:add("Unsqueeze", { weights, g:constant { 2 } })
    y = g:add("ReduceSum", { g:add("Mul", { rows, column }), g:constant { 1 } }, { keepdims = 0 })
  end
  if not call.args.mean then return y end
  local n <const> = g:add("ReduceSum", { counts, g:constant { 1 } }, { keepdims = 1 })
  return g:add("Div", { y, g:add("Max", { n, g:constant(1, dtype) }) })
end

function rules.gather(g, call)
  return g:add("GatherElements", { g:input(call, 1), g:input(call, 2) },
    { axis = call.args.dim - 1 })
end
function rules.scatter_add(g, call)
  return g:add("ScatterElements", { g:input(call, 1), g:input(call, 2), g:input(call, 3) },
    { axis = call.args.dim - 1, reduction = "add" })
end
-- What index_add is made of: rows added to those of zeros that their index says.
function rules.index_select_backward(g, call)
  local dim <const>, x, out = call.args.dim, call.inputs[1], call.outputs[1]
  local along = {}
  for k = 1, x.ndim do along[k] = k == dim and -1 or 1 end
  local index <const> = g:add("Reshape", { g:input(call, 2, "i64"), g:constant(along) })
  local shape <const> = g:sizes(call, function(run) return run.inputs[1].shape end)
  return g:add("ScatterElements", { g:add("Expand", { g:constant(0, out.dtype), g:shape(call) }),
    g:add("Expand", { index, shape }), g:input(call, 1) }, { axis = dim - 1, reduction = "add" })
end

for op, upper in next, { tril = 0, triu = 1 } do
  rules[op] = function(g, call)
    return g:add("Trilu", { g:input(call, 1), g:constant(call.args.diagonal) }, { upper = upper })
  end
end

function rules.one_hot(g, call)
  local n <const> = g:fixed(call, "the number of classes", function(run)
    return run.outputs[1].shape[run.outputs[1].ndim]
  end)
  local classes = {}
  for k = 1, n do classes[k] = k - 1 end
  local ids <const> = g:add("Unsqueeze", { g:input(call, 1, "i64"), g:constant { -1 } })
  return g:cast(g:add("Equal", { ids, g:constant(classes) }), "bool", call.outputs[1].dtype)
end

function rules.topk(g, call)
  local args <const> = call.args
  local k <const> = g:sizes(call, function(run) return { run.args.k } end)
  return g:add("TopK", { g:input(call, 1), k },
    { axis = args.dim - 1, largest = args.largest and 1 or 0, sorted = 1 }, 2)
end

-- Joining.
local function parts(g, call)
  local list = {}
  for k = 1, #call.inputs do list[k] = g:input(call, k, call.outputs[1].dtype) end
  return list
end
function rules.cat(g, call)
  return g:add("Concat", parts(g, call), { axis = call.args.dim - 1 })
end
function rules.stack(g, call)
  local list, axis = parts(g, call), g:constant { call.args.dim - 1 }
  for k, name in ipairs(list) do list[k] = g:add("Unsqueeze", { name, axis }) end
  return g:add("Concat", list, { axis = call.args.dim - 1 })
end

-- What differs from call to call.
local RANDOM <const> = { "dropout", "rand", "randn", "bernoulli", "multinomial", "randperm",
                         "randint" }
for _, op in ipairs(RANDOM) do
  rules[op] = function(g, call)
    g:refuse(call, "draws random numbers, which a file cannot: draw them outside of the model, "
      .. "and make them an input")
  end
end

return rules
