--- stdlib/apps/check/checks/initial_weights.lua: initial weights that are all equal (the units stay
--- equal), or all 0.
local c = require "ltrain.c"
local tensor_origins = require "ltrain.apps.check.tensor_origins"
local walk = require "ltrain.core.walk"

-- Layers whose rows of weights are units that are to differ.
local LAYERS <const> = { "^Linear", "^Conv", "^Bilinear", "^LSTM", "^GRU", "^RNN", "^Multihead" }
local ENOUGH <const> = 4 -- steps after which a gradient has come to all weights

-- Operations on one tensor, or with parameters only, behind which a layer of zeros still is one.
local THROUGH <const> = {}
for name in ("relu gelu silu tanh sigmoid softplus elu leaky_relu mish hardswish dropout "
  .. "layer_norm batch_norm group_norm max_pool2d avg_pool2d"):gmatch "%S+" do
  THROUGH[name] = true
end

local function is_layer(module)
  local name = walk.class_name(module)
  for _, pattern in ipairs(LAYERS) do
    if name:find(pattern) then return true end
  end
  return false
end

local function line_of(context, name)
  local field = name:match "^[^.%[]+"
  return context.source and context.source.line_of_field(field) or context.step_line
end

-- The weights of a module: {name =, weight =, layer = whether their rows are a layer's units}.
local function weights_of(root)
  local list = {}
  for _, entry in ipairs(walk.modules(root)) do
    for key, value in next, entry.module do
      local layer = is_layer(entry.module)
      if c.is_parameter(value) and value.requires_grad and #value.shape >= 2
        and (layer or value.shape[1] > 1) then
        list[#list + 1] = { weight = value, layer = layer,
          name = entry.name == "" and key or ("%s.%s"):format(entry.name, key) }
      end
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- The operations that take each tensor.
local function consumers_of(calls)
  local list = {}
  for _, call in ipairs(calls) do
    for _, input in ipairs(call.inputs) do
      list[input] = list[input] or {}
      table.insert(list[input], call)
    end
  end
  return list
end

-- Whether a tensor goes, through activations and views only, into another layer's weights: not into
-- a sum, as a correction that begins at 0 does, and not into the loss, as a last layer.
local function is_hidden(tensor, consumers, is_weight)
  local found = false
  for _, call in ipairs(consumers[tensor] or {}) do
    local other = false
    for _, input in ipairs(call.inputs) do other = other or is_weight[input] ~= nil end
    if other and call.inputs[1] == tensor then
      found = true
    elseif call.inputs[1] == tensor and (call.view or THROUGH[call.op]
      or call.op == "add" and c.is_parameter(call.inputs[2])) then
      if not is_hidden(call.outputs[1], consumers, is_weight) then return false end
      found = true
    else
      return false
    end
  end
  return found
end

-- A layer of zeros between others: nothing of its inputs comes out, no gradient comes in front.
local function check_hidden(context, zeros)
  local calls, is_weight = context.first and context.first.calls or {}, {}
  for _, one in ipairs(zeros.all) do is_weight[one.weight] = true end
  local consumers = consumers_of(calls)
  for _, one in ipairs(zeros) do
    for _, call in ipairs(consumers[one.weight] or {}) do
      if not one.hidden and call.outputs[1] and call.inputs[1] ~= one.weight
        and is_hidden(call.outputs[1], consumers, is_weight) then
        one.hidden = true
      end
    end
  end
end

return {
  before = function(context, state)
    local _ <close> = c.no_grad()
    context.zeros = { all = weights_of(state.module) }
    for _, one in ipairs(context.zeros.all) do
      local low, high = one.weight:min():item(), one.weight:max():item()
      if low == 0 and high == 0 then
        table.insert(context.zeros, one)
      elseif low == high and one.layer and one.weight.shape[1] > 1 then
        context.report:warn("weights", line_of(context, one.name), ("all values of %s %s are %g: "
          .. "its %d outputs are the same, and stay so"):format(one.name,
          tensor_origins.shape(one.weight), low, one.weight.shape[1]),
          "start with random weights (kaiming_uniform_ and the like)")
      end
    end
    if #context.zeros > 0 then check_hidden(context, context.zeros) end
  end,
  -- A last layer of zeros is a usual start; two of them in a row are not.
  after = function(context)
    local _ <close> = c.no_grad()
    local enough = (context.learn_steps or 0) >= ENOUGH
    for _, one in ipairs(context.zeros or {}) do
      local stays = enough and not one.weight:any():item()
      if stays or one.hidden then
        context.report:warn("weights", line_of(context, one.name), ("all values of %s %s are 0%s")
          :format(one.name, tensor_origins.shape(one.weight), stays
          and (", and stay 0 in %d steps: no gradient reaches them"):format(context.learn_steps)
          or " at the start: its outputs are constant, and no gradient reaches the layers before "
            .. "it"),
          "start with random weights; zeros suit only the last of several layers")
      end
    end
  end,
}
