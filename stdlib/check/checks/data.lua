--- stdlib/check/checks/data.lua: values of the data that are not finite.
local batch = require "ltrain.check.batch"
local c = require "ltrain.c"
local columns = require "ltrain.check.columns"

local MOST <const> = 1 << 26 -- elements that are looked at

local function look(context, tensor, what)
  if not tensor.dtype:find "^b?f%d" or tensor:numel() > MOST then return end
  local bad = tensor:numel() - tensor:isfinite():sum():item()
  if bad == 0 then return end
  context.broken = true
  local where = columns.line_of(context)
  context.report:error("data", where, ("%s %s: %d of %d values are not finite (%d NaN)"):format(
    what, "[" .. table.concat(tensor.shape, ", ") .. "]", math.tointeger(bad), tensor:numel(),
    math.tointeger(tensor:isnan():sum():item())),
    "look where they come from: a division by zero, a missing field, a log of zero")
end

return {
  on_data = function(context, state)
    context.columns = columns.of(state.data.train.loader)
    for i, column in ipairs(context.columns or {}) do
      look(context, column.tensor, ("the training data, tensor %s"):format(column.name or i))
    end
  end,
  before = function(context)
    if context.columns then return end
    local whole = context.whole or context.batch
    for _, leaf in ipairs(batch.leaves(whole)) do
      if c.is_tensor(leaf.value) then look(context, leaf.value, leaf.path) end
    end
  end,
}
