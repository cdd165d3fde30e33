-- stdlib/onnx/products.lua: ONNX nodes for products, convolutions, pooling and attention.

local c = require "ltrain.c"

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
  local shape <const>, kernel = call.inputs[1].shape, call.inputs[2].shape
  local output_padding = {}
  for k, stride in ipairs(args.stride) do
    local size <const> = (shape[k + 2] - 1) * stride - 2 * args.padding[k] +
      args.dilation[k] * (kernel[k + 2] - 1) + 1
    output_padding[k] = call.outputs[1].shape[k + 2] - size
  end
  return g:add("ConvTranspose", { g:input(call, 1, dtype), g:input(call, 2, dtype) },
    { strides = args.stride, pads = pads(args.padding), dilations = args.dilation,
      group = args.groups, output_padding = output_padding })
end

-- A window that reaches beyond the end (ceil_mode) sees more padding there.
function rules.max_window(g, call)
  local args <const>, shape = call.args, call.inputs[1].shape
  local around <const> = pads(args.padding)
  for k, n in ipairs(args.out) do
    local last <const> = (n - 1) * args.stride[k] + args.dilation[k] * (args.kernel_size[k] - 1)
    around[#args.out + k] = math.max(around[k], last + 1 - shape[k + 2] - around[k])
  end
  return g:add("MaxPool", { g:input(call, 1) },
    { kernel_shape = args.kernel_size, strides = args.stride, pads = around,
      dilations = args.dilation })
end

-- Heads of k and v repeated for groups of heads of q.
local function repeat_heads(g, call, name, k)
  local heads <const>, own = call.inputs[1].shape, call.inputs[k].shape
  local at <const> = #own - 2
  local factor <const> = at > 0 and heads[at] // own[at] or 1
  if not call.args.enable_gqa or factor == 1 then return name end
  local index = {}
  for head = 0, heads[at] - 1 do index[head + 1] = head // factor end
  return g:add("Gather", { name, g:constant(index) }, { axis = at - 1 })
end

-- What is added to the scores: zero where a key takes part, minus infinity elsewhere.
local function causal_mask(g, call, dtype)
  local q <const>, k = call.inputs[1].shape, call.inputs[2].shape
  local seen <const> = c.ones({ q[#q - 1], k[#k - 1] }):tril()
  return g:name_of(c.zeros(seen.shape):masked_fill(seen:eq(0), -math.huge):to(dtype))
end

function rules.scaled_dot_product_attention(g, call)
  local dtype <const>, args = call.outputs[1].dtype, call.args
  local shape <const>, perm = call.inputs[1].shape, {}
  for k = 1, #shape do perm[k] = k - 1 end
  perm[#shape - 1], perm[#shape] = #shape - 1, #shape - 2
  local q <const>, k, v = g:input(call, 1, dtype), g:input(call, 2, dtype), g:input(call, 3, dtype)
  local keys <const> = g:add("Transpose", { repeat_heads(g, call, k, 2) }, { perm = perm })
  local scale <const> = g:constant(args.scale or 1 / math.sqrt(shape[#shape]), dtype)
  local scores = g:add("MatMul", { g:add("Mul", { q, scale }), keys })
  local mask <const>, never = call.inputs[4], g:constant(-math.huge, dtype)
  if args.causal then scores = g:add("Add", { scores, causal_mask(g, call, dtype) }) end
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
