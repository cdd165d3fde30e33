--- stdlib/apps/check/checks/target_range.lua: targets outside the range of the last layer's
--- outputs.
local batch_samples = require "ltrain.apps.check.batch_samples"
local c = require "ltrain.c"
local dataset_tensors = require "ltrain.apps.check.dataset_tensors"
local is_float = require "ltrain.core.is_float"
local tensor_origins = require "ltrain.apps.check.tensor_origins"

local RANGES <const> = {
  sigmoid = { 0, 1 }, softmax = { 0, 1 }, tanh = { -1, 1 }, relu = { 0, math.huge },
}
local DIFFERENCES <const> = { square = true, abs = true } -- mse_loss, l1_loss and the like
local BEYOND <const> = 0.05 -- of the range: targets beyond it by less are rounding, or noise
local MANY <const> = 0.25 -- of the targets

-- The values of the data set behind a tensor of the batch, or those of the tensor; nil where it is
-- not of the batch.
local function values_of(context, tensor)
  for _, leaf in ipairs(batch_samples.leaves(context.batch)) do
    local value = leaf.value
    if value.dtype == tensor.dtype and value:numel() == tensor:numel()
      and value:flatten():equal(tensor:flatten()) then
      local column = dataset_tensors.find(context.columns, leaf)
      return column and dataset_tensors.rows(context.columns, column) or tensor
    end
  end
end

local function check(context, call, made, targets)
  local range = made and RANGES[made.op]
  if not range or not is_float(targets.dtype) or targets.requires_grad then return end
  local values = values_of(context, targets)
  if not values then return end
  local low, high = range[1], range[2]
  local slack = BEYOND * (high < math.huge and high - low or 1)
  local outside = values:lt(low - slack):logical_or(values:gt(high + slack)):sum():item()
  if outside < MANY * values:numel() then return end
  context.report:warn("range", call.line, ("the result of %s is in %s, and the targets are "
    .. "%.3g..%.3g"):format(made.op, high < math.huge and ("%d..%d"):format(low, high)
    or "0 and above", values:min():item(), values:max():item()),
    "let the last layer end without an activation, or scale the targets to that range")
end

return {
  before = function(context)
    if not context.first or context.broken then return end
    local _ <close> = c.no_grad()
    local calls, made = context.first.calls, {}
    for i, call in ipairs(calls) do
      local next_one = calls[i + 1]
      if call.op == "sub" and #call.inputs == 2 and next_one and DIFFERENCES[next_one.op]
        and next_one.inputs[1] == call.outputs[1] then
        check(context, call, tensor_origins.producer(made, call.inputs[1]), call.inputs[2])
        check(context, call, tensor_origins.producer(made, call.inputs[2]), call.inputs[1])
      end
      tensor_origins.add(made, call)
    end
  end,
}
