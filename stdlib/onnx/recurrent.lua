-- stdlib/onnx/recurrent.lua: ONNX nodes for recurrent layers.

local rules = {}

-- The rows of [G H, ...] with its G gates in another order, as [1, G H, ...].
local function reordered(g, name, gates, h)
  local index = {}
  for k, gate in ipairs(gates) do
    for row = 0, h - 1 do index[(k - 1) * h + row + 1] = (gate - 1) * h + row end
  end
  if #gates > 1 then name = g:add("Gather", { name, g:constant(index) }, { axis = 0 }) end
  return g:add("Unsqueeze", { name, g:constant { 0 } })
end

-- Both biases, [1, 2 G H]; "" where there are none.
local function bias(g, call, gates, h, dtype)
  local ih <const>, hh = g:input(call, 4, dtype), g:input(call, 5, dtype)
  if not ih then return "" end
  return g:add("Concat", { reordered(g, ih, gates, h), reordered(g, hh, gates, h) }, { axis = 1 })
end

-- A first state [N, H] as [1, N, H]; "" where there is none.
local function state(g, call, k, dtype)
  local name <const> = g:input(call, k, dtype)
  return name and g:add("Unsqueeze", { name, g:constant { 0 } }) or ""
end

-- `gates`: the places of ONNX's gates among PyTorch's; `n_states` of the results.
local function rule(node, gates, n_states, attributes_of)
  return function(g, call)
    local dtype <const>, h = call.outputs[1].dtype, call.inputs[3].shape[2]
    if call.inputs[8] then
      g:refuse(call, "has a projection, which ONNX's %s has not: leave out proj_size", node)
    end
    local attributes <const> = attributes_of and attributes_of(call) or {}
    attributes.hidden_size = h
    attributes.direction = call.args.reverse and "reverse" or "forward"
    local inputs <const> = { g:input(call, 1, dtype),
                             reordered(g, g:input(call, 2, dtype), gates, h),
                             reordered(g, g:input(call, 3, dtype), gates, h),
                             bias(g, call, gates, h, dtype), g:input(call, 9, "i32") or "",
                             state(g, call, 6, dtype) }
    if n_states == 2 then inputs[7] = state(g, call, 7, dtype) end
    local made <const> = { g:add(node, inputs, attributes, 1 + n_states) }
    for k, name in ipairs(made) do
      made[k] = g:add("Squeeze", { name, g:constant { k == 1 and 1 or 0 } })
    end
    return table.unpack(made)
  end
end

rules.lstm_layer = rule("LSTM", { 1, 4, 2, 3 }, 2)
rules.gru_layer = rule("GRU", { 2, 1, 3 }, 1, function() return { linear_before_reset = 1 } end)
rules.rnn_layer = rule("RNN", { 1 }, 1, function(call)
  return { activations = { call.args.nonlinearity == 0 and "Tanh" or "Relu" } }
end)

return rules
