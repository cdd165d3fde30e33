-- stdlib/onnx/products.lua: ONNX nodes for products, convolutions, pooling and attention.

local rules = {}

function rules.matmul(g, call)
  local dtype <const> = call.outputs[1].dtype
  return g:add("MatMul", { g:input(call, 1, dtype), g:input(call, 2, dtype) })
end

function rules.linear(g, call)
  local dtype <const> = call.outputs[1].dtype
  local x <const>, weight, bias = g:input(call, 1, dtype), g:input(call, 2, dtype),
    g:input(call, 3, dtype)
  if call.inputs[1].ndim == 2 then
    return g:add("Gemm", { x, weight, bias }, { transB = 1 })
  end
  local y <const> = g:add("MatMul", { x, g:add("Transpose", { weight }, { perm = { 1, 0 } }) })
  return bias and g:add("Add", { y, bias }) or y
end

-- Padding before and behind each dim, as ONNX lists it.
local function pads(padding)
  local list = {}
  for k, n in ipairs(padding) do list[k], list[#padding + k] = n, n end
  return list
end

function rules.convolution(g, call)
  local dtype <const>, args = call.outputs[1].dtype, call.args
  local x <const>, weight, bias = g:input(call, 1, dtype), g:input(call, 2, dtype),
    g:input(call, 3, dtype)
  return g:add("Conv", { x, weight, bias },
    { strides = args.stride, pads = pads(args.padding), dilations = args.dilation,
      group = args.groups })
end

-- As the transposed convolution of its first input.
function rules.convolution_backward_input(g, call)
  local dtype <const>, args = call.outputs[1].dtype, call.args
  local output_padding <const> = g:fixed(call, "output_padding", function(run)
    local shape <const>, kernel, list = run.inputs[1].shape, run.inputs[2].shape, {}
    for k, stride in ipairs(args.stride) do
      local size <const> = (shape[k + 2] - 1) * stride - 2 * args.padding[k] +
        args.dilation[k] * (kernel[k + 2] - 1) + 1
      list[k] = run.outputs[1].shape[k + 2] - size
    end
    return list
  end)
  return g:add("ConvTranspose", { g:input(call, 1, dtype), g:input(call, 2, dtype) },
    { strides = args.stride, pads = pads(args.padding), dilations = args.dilation,
      group = args.groups, output_padding = output_padding })
end

-- A window that reaches beyond the end (ceil_mode) sees more padding there.
function rules.max_window(g, call)
  local args <const> = call.args
  local around <const> = g:fixed(call, "ceil_mode's padding", function(run)
    local list <const>, shape, out = pads(args.padding), run.inputs[1].shape, run.args.out
    for k, n in ipairs(out) do
      local last <const> = (n - 1) * args.stride[k] + args.dilation[k] * (args.kernel_size[k] - 1)
      list[#out + k] = math.max(list[k], last + 1 - shape[k + 2] - list[k])
    end
    return list
  end)
  return g:add("MaxPool", { g:input(call, 1) },
    { kernel_shape = args.kernel_size, strides = args.stride, pads = around,
      dilations = args.dilation })
end

-- Heads of k and v repeated for groups of heads of q.
local function repeat_heads(g, call, name, k)
  if not call.args.enable_gqa then return name end
  local at <const> = call.inputs[k].ndim - 2
  local index <const> = g:fixed(call, "how heads are shared:", function(run)
    local heads <const>, own, list = run.inputs[1].shape[at], run.inputs[k].shape[at], {}
    for head = 0, heads - 1 do list[head + 1] = head * own // heads end
    return list
  end)
  if #index == call.inputs[k].shape[at] then return name end
  return g:add("Gather", { name, g:constant(index) }, { axis = at - 1 })
end

-- True where a key takes part: those up to the query's own position.
local function causal_mask(g, call)
  local shape <const> = g:sizes(call, function(run)
    local q <const>, k = run.inputs[1].shape, run.inputs[2].shape
    return { q[#q - 1], k[#k - 1] }
  end)
  local ones <const> = g:add("Expand", { g:constant(1, "f32"), shape })
  return g:cast(g:add("Trilu", { ones }, { upper = 0 }), "f32", "bool")
end

function rules.scaled_dot_product_attention(g, call)
  local dtype <const>, args = call.outputs[1].dtype, call.args
  local shape <const>, perm = call.inputs[1].shape, {}
  for k = 1, #shape do perm[k] = k - 1 end
  perm[#shape - 1], perm[#shape] = #shape - 1, #shape - 2
  local q <const>, k, v = g:input(call, 1, dtype), g:input(call, 2, dtype), g:input(call, 3, dtype)
  local keys <const> = g:add("Transpose", { repeat_heads(g, call, k, 2) }, { perm = perm })
  local scale <const> = args.scale or 1 / math.sqrt(g:fixed(call, "how many features:",
    function(run) return run.inputs[1].shape[#shape] end))
  local scores = g:add("MatMul", { g:add("Mul", { q, g:constant(scale, dtype) }), keys })
  local mask <const>, never = call.inputs[4], g:constant(-math.huge, dtype)
  if args.causal then scores = g:add("Where", { causal_mask(g, call), scores, never }) end
  if mask and mask.dtype == "bool" then
    scores = g:add("Where", { g:input(call, 4), scores, never })
  elseif mask then
    scores = g:add("Add", { scores, g:input(call, 4, dtype) })
  end
  local weights = g:add("Softmax", { scores }, { axis = -1 })
  if mask then -- a row that may see nothing gives zeros
    weights = g:add("Where", { g:add("IsNaN", { weights }), g:constant(0, dtype), weights })
  end
  return g:add("MatMul", { weights, repeat_heads(g, call, v, 3) })
end

return rules
