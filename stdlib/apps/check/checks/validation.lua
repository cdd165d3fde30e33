--- stdlib/apps/check/checks/validation.lua: validation data in another order, or of another scale,
--- than they should be, and validation in training mode.
local c = require "ltrain.c"
local dataset_tensors = require "ltrain.apps.check.dataset_tensors"
local is_float = require "ltrain.core.is_float"

local FEW <const>, MOST <const> = 16, 1 << 26 -- values that are checked
local APART <const> = 8 -- times the standard deviation

-- Mean and standard deviation of the inputs of a loader, and its columns; nil where there are none.
local function statistics(loader)
  local list = dataset_tensors.of(loader)
  local tensor = list and list[1] and list[1].tensor
  if not tensor or not is_float(tensor.dtype) then return nil end
  if tensor:numel() < FEW or tensor:numel() > MOST then return nil end
  tensor = dataset_tensors.rows(list, list[1]):to "f32"
  return tensor:mean():item(), tensor:std():item(), tensor
end

local function check_scale(context, train, val)
  local mean, deviation, tensor = statistics(train)
  local of_val, spread, other = statistics(val)
  if not mean or not of_val or #tensor.shape ~= #other.shape then return end
  local apart = math.abs(mean - of_val) > APART * math.max(deviation, spread)
  if apart or spread > APART * deviation or deviation > APART * spread then
    context.report:warn("validation", dataset_tensors.line_of(context, "DataLoader"), ("the inputs "
      .. "have mean %.3g and standard deviation %.3g in training, %.3g and %.3g in validation")
      :format(mean, deviation, of_val, spread),
      "scale both with the statistics of the training data")
  end
end

return {
  on_data = function(context, state)
    local train = state.data.train.loader
    local given = state.fit_args.train ~= nil and state.fit_args.train == state.fit_args.val
    for _, source in ipairs(given and {} or state.data.val or {}) do
      local val = source.loader
      if type(val) == "table" and rawget(val, "dataset") then
        if rawget(val, "shuffle") == true then
          context.report:warn("validation", dataset_tensors.line_of(context, "DataLoader"), "the "
            .. "validation loader shuffles: its order, and the samples of a limit, change in each "
            .. "epoch", "remove shuffle for validation")
        end
        local _ <close> = c.no_grad()
        if type(train) == "table" and rawget(train, "dataset") and not context.broken
          and not context.constant then
          check_scale(context, train, val)
        end
      end
    end
  end,
  validated = function(context, state)
    if not state.module.training then return end
    context.report:warn("validation", c.runtime.function_line(state.module.validation_step),
      "the module is in training mode during validation: dropout and batch norm act as in training",
      "do not call self:train() in validation: the Trainer switches modes")
  end,
}
