-- spec/onnx/evaluate.lua: the graph of an ONNX file computed by operations of ltrain, as the
-- standard (onnx.ai/onnx/operators) defines its nodes: for suites without onnxruntime.
local lt = require "ltrain"

local DTYPES <const> = { [1] = "f32", [6] = "i32", [7] = "i64", [9] = "bool", [11] = "f64" }

-- fn(inputs, attributes) of each node; a list of several results.
local nodes = {}

local function method(name) return function(i) return i[1][name](i[1], i[2]) end end
for node, name in next, { Add = "add", Sub = "sub", Mul = "mul", MatMul = "matmul",
                          Mod = "remainder", And = "logical_and", Less = "lt",
                          GreaterOrEqual = "ge", Erf = "erf", Relu = "relu", Sigmoid = "sigmoid",
                          Sqrt = "sqrt", Tanh = "tanh" } do
  nodes[node] = method(name)
end

-- Dims of ONNX count from 0, or from the end.
local function dim_of(x, axis) return axis < 0 and x.ndim + axis + 1 or axis + 1 end

local function list_of(x) return x:reshape(-1):tolist() end

function nodes.Identity(i) return i[1] end
function nodes.Div(i)
  return i[1].dtype == "i64" and i[1]:floor_divide(i[2]) or i[1]:div(i[2])
end
function nodes.Cast(i, a) return i[1]:to(DTYPES[a.to]) end
function nodes.Concat(i, a) return lt.cat(i, dim_of(i[1], a.axis)) end
function nodes.CumSum(i) return i[1]:cumsum(i[2]:item() + 1) end
function nodes.Gather(i, a)
  local x <const>, index, dim = i[1], i[2], dim_of(i[1], a.axis)
  local shape <const> = x.shape
  local sizes = { table.unpack(shape, 1, dim - 1) }
  table.move(index.shape, 1, index.ndim, #sizes + 1, sizes)
  table.move(shape, dim + 1, #shape, #sizes + 1, sizes)
  return x:index_select(dim, index:reshape(-1)):reshape(sizes)
end
function nodes.Gemm(i) return i[1]:matmul(i[2]:t()) + (i[3] or 0) end
function nodes.Where(i) return lt.where(i[1], i[2], i[3]) end
function nodes.Range(i) return lt.arange(i[1]:item(), i[2]:item(), i[3]:item()) end
function nodes.Trilu(i, a) return a.upper == 1 and i[1]:triu() or i[1]:tril() end
function nodes.Softmax(i, a) return i[1]:softmax(dim_of(i[1], a.axis)) end
function nodes.Shape(i, a)
  return lt.tensor({ table.unpack(i[1].shape, a.start + 1, a["end"]) }, { dtype = "i64" })
end
function nodes.Reshape(i, a)
  local sizes <const> = list_of(i[2])
  for k, n in ipairs(sizes) do
    if n == 0 and a.allowzero ~= 1 then sizes[k] = i[1].shape[k] end
  end
  return i[1]:reshape(sizes)
end
function nodes.Expand(i) return i[1] + lt.zeros(list_of(i[2]), { dtype = i[1].dtype }) end
function nodes.Transpose(i, a)
  local dims = {}
  for k, d in ipairs(a.perm) do dims[k] = d + 1 end
  return i[1]:permute(dims)
end
function nodes.Squeeze(i)
  if not i[2] then return i[1]:squeeze() end
  local dims = {}
  for k, d in ipairs(list_of(i[2])) do dims[k] = dim_of(i[1], d) end
  return i[1]:squeeze(dims)
end
function nodes.Unsqueeze(i) return i[1]:unsqueeze(i[2]:reshape(-1):item() + 1) end
function nodes.ReduceMean(i, a)
  local dims = {}
  for k, d in ipairs(a.axes) do dims[k] = dim_of(i[1], d) end
  return i[1]:mean(dims, { keepdim = a.keepdims ~= 0 })
end
function nodes.LayerNormalization(i, a)
  local shape <const> = { table.unpack(i[1].shape, dim_of(i[1], a.axis)) }
  return i[1]:layer_norm(shape, { weight = i[2], bias = i[3], eps = a.epsilon })
end

-- Starts, ends, axes and steps; a place below 0 counts from the end.
function nodes.Slice(i)
  local x, starts <const>, ends, axes, steps = i[1], list_of(i[2]), list_of(i[3]), list_of(i[4]),
    list_of(i[5])
  for k, axis in ipairs(axes) do
    local size <const>, index = x.shape[axis + 1], {}
    local first <const> = starts[k] < 0 and starts[k] + size or starts[k]
    local last <const> = ends[k] < 0 and ends[k] + size or math.min(ends[k], size)
    for at = first, last - (steps[k] > 0 and 1 or -1), steps[k] do index[#index + 1] = at end
    x = x:index_select(axis + 1, lt.tensor(index, { dtype = "i64" }))
  end
  return x
end

-- Padding that is not the same on both sides is added before.
local function padded(x, pads, value)
  local list, n = {}, #pads // 2
  for k = n, 1, -1 do
    list[#list + 1], list[#list + 2] = pads[k], pads[n + k]
  end
  return x:pad(list, { value = value })
end
function nodes.Conv(i, a)
  return lt.conv2d(padded(i[1], a.pads), i[2], i[3], { stride = a.strides, dilation = a.dilations,
    groups = a.group })
end
function nodes.ConvTranspose(i, a)
  local padding <const> = { table.unpack(a.pads, 1, #a.pads // 2) }
  return lt.conv_transpose2d(i[1], i[2], i[3], { stride = a.strides, padding = padding,
    dilation = a.dilations, groups = a.group, output_padding = a.output_padding })
end
function nodes.MaxPool(i, a)
  return (padded(i[1], a.pads, -math.huge):max_pool2d(a.kernel_shape, { stride = a.strides,
    dilation = a.dilations }))
end

-- Lines between the elements of one dim.
local function resized(x, dim, n, scale, aligned)
  local last <const> = x.shape[dim] - 1
  local at = lt.arange(n, { dtype = "f32" })
  if aligned then at = at * (n > 1 and last / (n - 1) or 0) else at = (at + 0.5) / scale - 0.5 end
  at = at:clamp(0, last)
  local first <const> = at:floor():to "i64"
  local shape = {}
  for k = 1, x.ndim do shape[k] = k == dim and n or 1 end
  local part <const> = (at - first):view(shape)
  local a <const> = x:index_select(dim, first)
  return a + (x:index_select(dim, (first + 1):clamp(0, last)) - a) * part
end
function nodes.Resize(i, a)
  assert(a.mode == "linear" and not i[2])
  local x = i[1]
  local scales <const>, sizes = i[3] and list_of(i[3]), i[4] and list_of(i[4])
  for k, size in ipairs(i[1].shape) do
    local n <const> = sizes and sizes[k] or math.floor(size * scales[k])
    x = resized(x, k, n, sizes and n / size or scales[k],
      a.coordinate_transformation_mode == "align_corners")
  end
  return x
end

-- Gates in the order input, output, forget, cell; from the first step to the last.
function nodes.LSTM(i, a)
  local x <const>, w, r, b = i[1], i[2][1], i[3][1], i[4][1]
  local n <const>, h_size, steps = x.shape[2], a.hidden_size, {}
  local bias <const> = b:narrow(1, 1, 4 * h_size) + b:narrow(1, 4 * h_size + 1, 4 * h_size)
  local h = i[6] and i[6][1] or lt.zeros(n, h_size)
  local cell = i[7] and i[7][1] or lt.zeros(n, h_size)
  for t = 1, x.shape[1] do
    local g <const> = x[t]:matmul(w:t()) + h:matmul(r:t()) + bias
    local function gate(k) return g:narrow(2, (k - 1) * h_size + 1, h_size) end
    cell = gate(3):sigmoid() * cell + gate(1):sigmoid() * gate(4):tanh()
    h = gate(2):sigmoid() * cell:tanh()
    steps[t] = h
  end
  return lt.stack(steps, 1):unsqueeze(2), h:unsqueeze(1), cell:unsqueeze(1)
end

--- The outputs of a file (reader.lua) for a list of inputs.
return function(file, inputs)
  local values = {}
  for name, x in next, file.initializers do
    values[name] = lt.from_bytes(x.bytes, DTYPES[x.dtype], x.shape)
  end
  for k, input in ipairs(file.inputs) do values[input.name] = inputs[k] end
  for _, node in ipairs(file.nodes) do
    local given = {}
    for k, name in ipairs(node.inputs) do given[k] = values[name] or nil end
    local fn <const> = assert(nodes[node.op], node.op)
    for k, x in ipairs { fn(given, node.attributes) } do
      if node.outputs[k] then values[node.outputs[k]] = x end
    end
  end
  local list = {}
  for k, output in ipairs(file.outputs) do list[k] = values[output.name] end
  return list
end
