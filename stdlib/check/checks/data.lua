--- stdlib/check/checks/data.lua: values of the data that are not finite, or say nothing, or all.
local batch = require "ltrain.check.batch"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local columns = require "ltrain.check.columns"
local is_float = require "ltrain.core.is_float"

local MOST <const> = 1 << 26 -- elements that are looked at

local function look(context, tensor, what)
  if not is_float(tensor.dtype) or tensor:numel() > MOST then return end
  local bad = tensor:numel() - tensor:isfinite():sum():item()
  if bad == 0 then return end
  context.broken = true
  local where = columns.line_of(context)
  context.report:error("data", where, ("%s %s: %d of %d values are not finite (%d NaN)"):format(
    what, "[" .. table.concat(tensor.shape, ", ") .. "]", math.tointeger(bad), tensor:numel(),
    math.tointeger(tensor:isnan():sum():item())),
    "look where they come from: a division by zero, a missing field, a log of zero")
end

local FEW <const> = 20 -- samples of which nothing is asked

-- Inputs that are all the same.
local function check_constant(context, column)
  local tensor = column.tensor
  if not is_float(tensor.dtype) or tensor.shape[1] <= FEW or tensor:numel() > MOST then return end
  local low, high = tensor:min():item(), tensor:max():item()
  if low == high then
    context.constant = true
    context.report:warn("data", columns.line_of(context), ("the training data, tensor %s [%s]: all "
      .. "values are %g"):format(column.name or 1, table.concat(tensor.shape, ", "), low),
      "look at how it is read: a model learns nothing of it")
  end
end

-- A column of the inputs that is the labels.
local function check_answers(context, inputs, labels)
  local x, y = inputs.tensor, labels.tensor
  if #x.shape ~= 2 or #y.shape ~= 1 or not is_float(x.dtype) or x:numel() > MOST
    or y.shape[1] <= FEW then
    return
  end
  y = y:to(x.dtype)
  if y:min():item() == y:max():item() then return end
  local same = x:eq(y:unsqueeze(2)):sum(1):eq(y.shape[1])
  if same:any():item() then
    local at = same:to("i64"):argmax():item() + 1
    context.report:warn("data", columns.line_of(context), ("column %d of tensor %s of the training "
      .. "data is tensor %s: the inputs have the answers"):format(math.tointeger(at),
      inputs.name or 1, labels.name or 2), "leave that column out of the inputs")
  end
end

-- A data set that gives the same sample for each position.
local function check_alike(context, loader)
  local whole = context.whole
  local dataset = type(loader) == "table" and rawget(loader, "dataset")
  if context.columns or not class.has_method(dataset, "get") then return end
  local n = whole and batch.size(whole) or 0
  if n < 4 then return end
  local any = false
  for _, leaf in ipairs(batch.leaves(whole)) do
    local value = leaf.value
    if not value:equal(value:narrow(1, 1, 1):expand(table.unpack(value.shape))) then return end
    any = any or is_float(value.dtype) and value:min():item() < value:max():item()
  end
  if any then
    context.report:warn("data", columns.line_of(context), ("the %d samples of the first batch are "
      .. "all the same"):format(n), "look at how get(i) of the data set uses i")
  end
end

return {
  on_data = function(context, state)
    context.columns = columns.of(state.data.train.loader)
    for i, column in ipairs(context.columns or {}) do
      look(context, column.tensor, ("the training data, tensor %s"):format(column.name or i))
    end
    local first, second = table.unpack(context.columns or {})
    if first and not context.broken then check_constant(context, first) end
    if second and not context.broken then check_answers(context, first, second) end
  end,
  before = function(context, state)
    check_alike(context, state.data.train.loader)
    if context.columns then return end
    local whole = context.whole or context.batch
    for _, leaf in ipairs(batch.leaves(whole)) do
      if c.is_tensor(leaf.value) then look(context, leaf.value, leaf.path) end
    end
  end,
}
