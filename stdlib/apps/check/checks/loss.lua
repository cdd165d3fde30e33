--- stdlib/apps/check/checks/loss.lua: checks the inputs of losses: probabilities instead of logits,
--- wrong shapes.
local c = require "ltrain.c"
local tensor_origins = require "ltrain.apps.check.tensor_origins"

local shape_text <const> = tensor_origins.shape
local MEAN <const> = 1 -- reduction = "mean"

local function check_cross_entropy(context, call, made)
  if not made then return end
  local from = shape_text(call.inputs[1])
  if made.op == "softmax" or made.op == "sigmoid" then
    context.report:error("loss", call.line, ("cross_entropy of the result of %s %s: it applies "
      .. "softmax itself, to logits"):format(made.op, from),
      ("pass it the values before %s"):format(made.op))
  elseif made.op == "log_softmax" then
    context.report:warn("loss", call.line, ("cross_entropy of the result of log_softmax %s: it "
      .. "applies log_softmax itself"):format(from), "pass it the values before log_softmax, or "
      .. "use nll_loss")
  elseif made.op == "tanh" then
    context.report:warn("loss", call.line, ("cross_entropy of the result of tanh %s: logits in "
      .. "-1..1 cannot express a confident "
      .. "prediction"):format(from), "let the last layer end without an "
      .. "activation")
  elseif made.op == "relu" then
    context.report:warn("loss", call.line, ("cross_entropy of the result of relu %s: logits below "
      .. "0 are cut off"):format(from), "let the last layer end without an activation")
  end
end

local function check_smoothing(context, call)
  local share = call.args.label_smoothing
  if share and share >= 0.9 then
    context.report:warn("loss", call.line, ("cross_entropy with label_smoothing = %g: targets are "
      .. "nearly the same for all classes"):format(share), "0.1 is usual")
  end
end

local MUCH <const>, TIMES <const> = 50, 10 -- a loss above MUCH + TIMES * log C

-- At the start a model can be no worse than one that guesses.
local function check_size(context, call)
  local loss, logits = call.outputs[1], call.inputs[1]
  local classes = logits.shape[#logits.shape == 1 and 1 or 2]
  if context.exploded or not loss or call.args.reduction ~= MEAN or classes < 2 then return end
  local value, guess = loss:item(), math.log(classes)
  if value > MUCH + TIMES * guess and value < math.huge then
    context.report:warn("loss", call.line, ("cross_entropy is %.3g at the start, where guessing "
      .. "would be %.3g: logits are up to %.3g"):format(value, guess, logits:abs():max():item()),
      "scale the inputs (subtract their mean, divide by their standard deviation), or begin with "
        .. "smaller weights")
  end
end

-- The loss is minus one of the library's.
local function check_sign(context, made_by)
  local loss = context.first.loss
  local storage, offset = c.runtime.identity(loss)
  for _, call in ipairs(context.first.calls) do
    local made = call.op == "neg" and tensor_origins.producer(made_by, call.inputs[1])
    if made and made.op == "cross_entropy" then
      local at, first = c.runtime.identity(call.outputs[1])
      if at == storage and first == offset then
        context.report:warn("loss", call.line, "the loss is minus a cross_entropy: training "
          .. "maximizes that", "remove the minus: optimizers minimize the loss")
      end
    end
  end
end

-- The library computes x * target in front of it.
local function check_binary_targets(context, call, before)
  if not before or before.op ~= "mul" or before.inputs[1] ~= call.inputs[1] then return end
  local targets = before.inputs[2]
  if not targets or call.args.threshold < 1e30 then return end
  local low, high = targets:min():item(), targets:max():item()
  if low < 0 or high > 1 then
    context.report:error("loss", call.line, ("binary_cross_entropy_with_logits takes targets in "
      .. "0..1: got %s with %.3g..%.3g"):format(shape_text(targets), low, high),
      "give it 0 and 1 (or probabilities); for classes use cross_entropy, for numbers mse_loss")
  end
end

local function check_softplus(context, call, made)
  if made and made.op == "sigmoid" and call.args.threshold > 1e30 then
    context.report:error("loss", call.line, "binary_cross_entropy_with_logits of the result of "
      .. "sigmoid: it applies sigmoid itself, to logits",
      "pass it the values before sigmoid, or use binary_cross_entropy")
  end
end

-- nll_loss is made of eq, masked_fill and gather.
local function check_gather(context, calls, i, made)
  local fill, eq = calls[i - 1], calls[i - 2]
  if not fill or not eq or fill.op ~= "masked_fill" or eq.op ~= "eq" then return end
  if eq.args.b ~= -100 then return end
  local input = calls[i].inputs[1]
  if made and made.op == "log_softmax" then
    if made.outputs[1] == input and made.args.dim ~= calls[i].args.dim then
      context.report:error("loss", calls[i].line, ("nll_loss takes the classes from dim %d of %s, "
        .. "and log_softmax was over dim %d"):format(calls[i].args.dim, shape_text(input),
        made.args.dim), ("write log_softmax(%d)"):format(calls[i].args.dim))
    end
    return
  end
  local most = input:max():item()
  if most > 1e-4 then
    context.report:error("loss", calls[i].line, ("nll_loss takes log-probabilities, which are at "
      .. "most 0: got %s with values up to %.3g"):format(shape_text(input), most),
      "apply log_softmax before it, or use cross_entropy on logits")
  end
end

-- kl_div computes target * (log(target) - input); log is of a target whose zeros are filled.
local function check_kl(context, call, made_by)
  local log = call.inputs[1] and made_by[call.inputs[1]]
  local fill = log and log.op == "log" and made_by[log.inputs[1]]
  if not fill or fill.op ~= "masked_fill" or fill.args.value ~= 1 then return end
  local input = call.inputs[2]
  local most = input and input:max():item() or 0
  if most > 1e-4 then
    context.report:error("loss", call.line, ("kl_div takes log-probabilities first, which are at "
      .. "most 0: got %s with values up to %.3g"):format(shape_text(input), most),
      "apply log_softmax to it, not softmax")
  end
end

-- [B, 1] against [B]: every sample against every other.
local function check_broadcast(context, call)
  local a, b = call.inputs[1], call.inputs[2]
  if not a or not b then return end
  local out = call.outputs[1]
  local x, y = a.shape, b.shape
  local short, long = #x < #y and a or b, #x < #y and b or a
  if #short.shape == 1 and #long.shape == 2 and long.shape[2] == 1 and long.shape[1] > 1
    and short.shape[1] == long.shape[1] and not context.first.constants[short]
    and not context.first.constants[long] then
    context.report:error("loss", call.line, ("%s of %s and %s is %s: each sample against each "
      .. "other"):format(call.op, shape_text(a), shape_text(b), shape_text(out)),
      "bring both to one shape: :squeeze(-1) of the one, or :unsqueeze(-1) of the other")
  end
end

-- Parameters and buffers, which may well be broadcast.
local function constants_of(module)
  local set = {}
  for _, parameter in module:named_parameters() do set[parameter] = true end
  for _, buffer in module:named_buffers() do set[buffer] = true end
  return set
end

return {
  before = function(context, state)
    if not context.first then return end
    local calls, made_by = context.first.calls, {}
    context.first.constants = constants_of(state.module)
    for i, call in ipairs(calls) do
      local made = call.inputs[1] and tensor_origins.producer(made_by, call.inputs[1])
      if call.op == "cross_entropy" then
        check_cross_entropy(context, call, made)
        check_smoothing(context, call)
        check_size(context, call)
      elseif call.op == "softplus" then
        check_softplus(context, call, made)
        check_binary_targets(context, call, calls[i - 1])
      elseif call.op == "gather" then
        check_gather(context, calls, i, made)
      elseif call.op == "sub" then
        check_broadcast(context, call)
        check_kl(context, call, made_by)
      end
      tensor_origins.add(made_by, call)
    end
    if context.first.loss then check_sign(context, made_by) end
  end,
}
