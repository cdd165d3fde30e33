--- stdlib/nn/flops.lua: floating point operations of a computation, by the rules of its operations.
--
-- As PyTorch's FlopCounterMode: an addition and a multiplication are two; products of matrices,
-- convolutions, attention and recurrent layers count, everything else is nothing beside them. The
-- operations are those that run (runtime.trace), so that an operation composed of these counts too.
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local flops = {}

-- Products of x with each filter [to, from / groups, ...] that meets it: one for each of `places`.
local function filtered(places, weight)
  return 2 * places:numel() * (weight:numel() // math.max(weight.shape[1], 1))
end

-- Rows of x [T, N, I] by weights of the input and of the state [G * H, I], [G * H, H].
local function recurrent(inputs)
  local rows = inputs[1].shape[1] * inputs[1].shape[2]
  return 2 * rows * (inputs[2]:numel() + inputs[3]:numel())
end

-- The gradient of the state by the gates; the other products are operations of their own.
local function recurrent_backward(inputs)
  return 2 * inputs[1].shape[1] * inputs[1].shape[2] * inputs[3]:numel()
end

-- Products of queries [.., L, E] with keys [.., S, E], and of their weights with values [.., S, V]:
-- how many there are of each.
local function attention(q, k, v, of_keys, of_values)
  local pairs_of = q:numel() // math.max(q:size(-1), 1) * k:size(-2)
  return 2 * pairs_of * (of_keys * q:size(-1) + of_values * v:size(-1))
end

-- By operation: fn(inputs, outputs).
local RULES <const> = {
  matmul = function(inputs, outputs)
    return 2 * outputs[1]:numel() * inputs[1]:size(-1)
  end,
  linear = function(inputs, outputs)
    return 2 * outputs[1]:numel() * inputs[1]:size(-1)
  end,
  convolution = function(inputs, outputs) return filtered(outputs[1], inputs[2]) end,
  convolution_backward_input = function(inputs) return filtered(inputs[1], inputs[2]) end,
  convolution_backward_weight = function(inputs, outputs)
    return filtered(inputs[1], outputs[1])
  end,
  lstm_layer = recurrent, gru_layer = recurrent, rnn_layer = recurrent,
  lstm_layer_backward = recurrent_backward, gru_layer_backward = recurrent_backward,
  rnn_layer_backward = recurrent_backward,
  scaled_dot_product_attention = function(inputs)
    return attention(inputs[1], inputs[2], inputs[3], 1, 1)
  end,
  scaled_dot_product_attention_backward = function(inputs) -- in: gradient, q, k, v; scores again
    return attention(inputs[2], inputs[3], inputs[4], 3, 2)
  end,
}

--- Those of a call of a trace (runtime.trace).
function flops.of_call(call)
  local rule = RULES[call.op]
  return rule and rule(call.inputs, call.outputs) or 0
end

-- Those of calls number `first` to `last` of a trace.
local function sum(calls, first, last)
  local total = 0
  for i = first, last do total = total + flops.of_call(calls[i]) end
  return total
end

-- Shapes of the tensors in a value: of one {2, 3}, of a list {{2, 3}, {4}}; nil: unknown.
local function sizes_of(value)
  if c.is_tensor(value) then return value.shape end
  if type(value) ~= "table" or getmetatable(value) ~= nil or #value == 0 then return nil end
  local list = {}
  for i, one in ipairs(value) do list[i] = sizes_of(one) or {} end
  return list
end

-- Notes each call of a module: by module {flops =, input =, output =}; to be closed.
local function watch(root, calls, found)
  local handles, open = {}, {}
  for _, entry in ipairs(walk.modules(root)) do
    local module = entry.module
    handles[#handles + 1] = module:register_forward_pre_hook(function(_, args)
      open[#open + 1] = { module, #calls + 1, sizes_of(#args == 1 and args[1] or args) }
    end)
    handles[#handles + 1] = module:register_forward_hook(function(_, _, output)
      local call = table.remove(open)
      while call[1] ~= module do call = table.remove(open) end -- an error that was caught
      local one = found[module] or { flops = 0, input = call[3], output = sizes_of(output) }
      one.flops = one.flops + sum(calls, call[2], #calls)
      found[module] = one
    end)
  end
  return setmetatable({}, { __close = function()
    for _, handle in ipairs(handles) do handle:remove() end
  end })
end

--- Runs fn() and returns its floating point operations, and by module below `root` (nil: none) what
--- the module's calls had: {flops =, input = the sizes of its first call's inputs, output = of what
--- it returned}.
function flops.measure(fn, root)
  local calls, found = {}, {}
  do
    local _ <close> = root and watch(root, calls, found) or nil
    local _ <close> = c.runtime.trace(calls)
    fn()
  end
  return sum(calls, 1, #calls), found
end

--- nn.utils.measure_flops(model, forward_fn [, loss_fn]): floating point operations of
--- forward_fn(), as Lightning's measure_flops. With loss_fn those of loss_fn(result):backward() are
--- added.
function flops.measure_flops(model, forward_fn, loss_fn)
  if not walk.is_module(model) then
    errors.blame("measure_flops: model must be a module: got %s", errors.show(model))
  end
  config.argument(forward_fn, "function", "measure_flops", "forward_fn")
  if loss_fn ~= nil then config.argument(loss_fn, "function", "measure_flops", "loss_fn") end
  return (flops.measure(function()
    local result = forward_fn()
    if loss_fn then loss_fn(result):backward() end
  end))
end

return flops
