--- stdlib/apps/check/checks/layer_pairs.lua: checks for consecutive layers that cancel each other,
--- or block all signal.
local c = require "ltrain.c"
local tensor_origins = require "ltrain.apps.check.tensor_origins"
local walk = require "ltrain.core.walk"

-- What stands behind itself, or behind what has done it already.
local TWICE <const> = {
  sigmoid = { sigmoid = true }, softmax = { softmax = true }, log_softmax = { softmax = true },
}
local MUCH <const> = 0.9 -- of the values that a dropout leaves out
local FEW <const> = 32 -- values of which it is no coincidence that all are below 0

local function check_twice(context, call, made)
  if not made or not (TWICE[call.op] or {})[made.op] then return end
  context.report:warn("chain", call.line, ("%s of the result of %s %s: values in 0..1 become "
    .. "nearly uniform"):format(call.op, made.op, tensor_origins.shape(call.inputs[1])),
    ("leave one of them out; losses on logits apply %s themselves"):format(made.op))
end

-- How often each tensor is an input.
local function uses_of(calls)
  local uses = {}
  for _, call in ipairs(calls) do
    for _, input in ipairs(call.inputs) do uses[input] = (uses[input] or 0) + 1 end
  end
  return uses
end

-- Two linear layers that could be one: not a bottleneck (an autoencoder's code, LoRA).
local function check_linear(context, call, made, uses)
  if call.op ~= "linear" or not made or made.op ~= "linear" or uses[made.outputs[1]] ~= 1 then
    return
  end
  local first, second = made.inputs[2], call.inputs[2]
  if not first or not second or not first.requires_grad or not second.requires_grad
    or made.outputs[1] ~= call.inputs[1] then
    return
  end
  local hidden = first.shape[1]
  if hidden < first.shape[2] and hidden < second.shape[1] then return end
  if hidden < first.shape[2] and second.shape[1] < hidden then return end -- narrower and narrower
  context.report:warn("chain", call.line, ("a linear layer of the result of a linear layer, "
    .. "weights %s and %s: both together are one linear layer"):format(tensor_origins.shape(first),
    tensor_origins.shape(second)), "put an activation between them, such as relu")
end

-- relu of values that are all below 0.
local function check_dead(context, call)
  local given, out = call.inputs[1], call.outputs[1]
  if call.op ~= "relu" or not out or out:numel() < FEW then return end
  if given:max():item() < 0 then
    context.dead = true
    context.report:warn("chain", call.line, ("relu of %s gives 0 only: its inputs are %.3g..%.3g, "
      .. "and no gradient passes"):format(tensor_origins.shape(given), given:min():item(),
      given:max():item()), "start with biases of 0 and smaller weights, scale the inputs, or use "
      .. "leaky_relu or gelu")
  end
end

-- Dropout that acts where modules are in evaluation mode.
local function check_dropout(context, call)
  if call.op ~= "dropout" or not call.args.p or call.args.p == 0 then return end
  context.report:warn("chain", call.line, ("dropout (p = %g) also acts in evaluation mode"):format(
    call.args.p), "use the layer, lt.nn.Dropout, or call the function only where self.training")
end

-- Dropout of what a cross-entropy gets.
local function check_logits(context, record, logits)
  for _, input in ipairs(record.outputs and logits or {}) do
    if record.outputs[1] == input then
      context.report:warn("chain", record.line, ("%s: Dropout of the logits of cross_entropy: it "
        .. "zeroes the scores of classes"):format(record.name),
        "apply it before the last layer")
    end
  end
end

local function check_layer(context, record, logits)
  local module = record.module
  if walk.class_name(module) == "Dropout" then check_logits(context, record, logits) end
  if not walk.class_name(module):find "Dropout" or type(module.p) ~= "number" then return end
  if module.p > MUCH then
    context.report:warn("chain", record.line, ("%s: %s drops %g %% of the values"):format(
      record.name, walk.class_name(module), module.p * 100), "p is the fraction dropped: 0.1 to "
      .. "0.5 is usual")
  end
end

return {
  before = function(context, state)
    local found = context.first
    if not found or context.broken then return end
    local _ <close> = c.no_grad()
    local made, uses, logits = tensor_origins.of(found.calls), uses_of(found.calls), {}
    for _, call in ipairs(found.calls) do
      local before = call.inputs[1] and tensor_origins.producer(made, call.inputs[1])
      check_twice(context, call, before)
      if #state.optimizers == 1 then check_linear(context, call, before, uses) end
      check_dead(context, call)
      check_dropout(context, call)
      if call.op == "cross_entropy" then logits[#logits + 1] = call.inputs[1] end
    end
    for _, record in ipairs(found.started) do check_layer(context, record, logits) end
  end,
}
