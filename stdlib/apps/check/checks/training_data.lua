--- stdlib/apps/check/checks/training_data.lua: training data that is not finite, constant, or
--- contains the targets.
local batch_samples = require "ltrain.apps.check.batch_samples"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local dataset_tensors = require "ltrain.apps.check.dataset_tensors"
local is_float = require "ltrain.core.is_float"

local MOST <const> = 1 << 26 -- elements that are checked

local function look(context, tensor, what)
  if not is_float(tensor.dtype) or tensor:numel() > MOST then return end
  local bad = tensor:numel() - tensor:isfinite():sum():item()
  if bad == 0 then return end
  context.broken = true
  local where = dataset_tensors.line_of(context)
  context.report:error("data", where, ("%s %s: %d of %d values are not finite (%d NaN)"):format(
    what, "[" .. table.concat(tensor.shape, ", ") .. "]", math.tointeger(bad), tensor:numel(),
    math.tointeger(tensor:isnan():sum():item())),
    "check where they come from: a division by zero, a missing field, a log of zero")
end

local FEW <const> = 20 -- samples of which nothing is asked
local TARGETS <const> = 64 -- columns of targets that are compared
local UNLIKELY <const> = 14 -- logarithm of one in a million

-- Inputs that are all the same.
local function check_constant(context, column)
  local tensor = column.tensor
  if not is_float(tensor.dtype) or tensor.shape[1] <= FEW or tensor:numel() > MOST then return end
  local low, high = tensor:min():item(), tensor:max():item()
  if low == high then
    context.constant = true
    context.report:warn("data", dataset_tensors.line_of(context),
      ("the training data, tensor %s [%s]: "
      .. "all values are %g"):format(column.name or 1, table.concat(tensor.shape, ", "), low),
      "check how it is read: a model learns nothing from it")
  end
end

-- Whether two columns of n values that have nothing to do with each other can hardly be the same.
local function is_telling(values)
  local n = values:numel()
  return n * math.log(values:flatten():unique():numel()) > UNLIKELY
end

-- The first column of x [N, D] that each column of y [N, K] is; nil where none is, or where y is
-- made of x as a whole: a reconstruction, or a sequence that is one position on.
local function answer_in(x, y)
  local n, k = y.shape[1], #y.shape == 1 and 1 or y.shape[2]
  x, y = x:reshape(n, -1), y:to(x.dtype):reshape(n, -1)
  if y.shape[2] ~= k or x.shape[2] == 1 or x:numel() > MOST then return nil end
  local count, at = 0, nil
  for i = 1, math.min(k, TARGETS) do
    local target = y:narrow(2, i, 1)
    local same = is_telling(target) and x:eq(target):sum(1):eq(n)
    if same and same:any():item() then
      count, at = count + 1, at or math.tointeger(same:to("i64"):argmax():item()) + 1
    end
  end
  return (k == 1 or count <= k // 2) and at or nil
end

-- Whether values of the batch are what a module is called with, rather than targets.
local function is_input(context, value)
  local storage = c.runtime.identity(value)
  for _, record in ipairs(context.first and context.first.started or {}) do
    for _, input in ipairs(record.inputs) do
      if c.runtime.identity(input) == storage then return true end
    end
  end
  return false
end

-- A leaf of the batch with all its values in the data set, or in the first batch.
local function all_of(context, leaf, whole)
  local column = dataset_tensors.find(context.columns, leaf)
  if column then return { value = column.tensor, name = "tensor " .. column.key } end
  for _, one in ipairs(whole) do
    if one.path == leaf.path then return { value = one.value, name = leaf.path } end
  end
end

-- Whether x [N, ...] may have a column y [N] or [N, K]. Targets of ids [N, T] are often ids too.
local function may_hold(x, y)
  local sizes, wanted = x.shape, y.shape
  if #sizes < 2 or sizes[1] ~= wanted[1] then return false end
  return #wanted == 1 or #wanted == 2 and (is_float(x.dtype) or wanted[2] == 1)
end

-- A column of the inputs that is the targets.
local function check_answers(context)
  local inputs, targets = {}, {}
  local whole = batch_samples.leaves(context.whole or context.batch)
  for _, leaf in ipairs(batch_samples.leaves(context.batch)) do
    local list = is_input(context, leaf.value) and inputs or targets
    if #leaf.value.shape > 0 then list[#list + 1] = all_of(context, leaf, whole) end
  end
  if #inputs == 0 then inputs[1] = table.remove(targets, 1) end -- changed before the first module
  for _, x in ipairs(inputs) do
    for _, y in ipairs(targets) do
      local at = may_hold(x.value, y.value) and answer_in(x.value, y.value)
      if at then
        context.report:warn("data", dataset_tensors.line_of(context), ("column %d of %s of the "
          .. "training data is %s: the inputs contain the targets"):format(at, x.name, y.name),
          "leave that column out of the inputs")
        return
      end
    end
  end
end

-- A data set that gives the same sample for each position.
local function check_alike(context, loader)
  local whole = context.whole
  local dataset = type(loader) == "table" and rawget(loader, "dataset")
  if context.columns or not class.has_method(dataset, "get") then return end
  local n = whole and batch_samples.size(whole) or 0
  if n < 4 then return end
  local any = false
  for _, leaf in ipairs(batch_samples.leaves(whole)) do
    local value = leaf.value
    if not value:equal(value:narrow(1, 1, 1):expand(table.unpack(value.shape))) then return end
    any = any or is_float(value.dtype) and value:min():item() < value:max():item()
  end
  if any then
    context.report:warn("data", dataset_tensors.line_of(context),
      ("the %d samples of the first batch "
      .. "are all the same"):format(n), "check how get(i) of the data set uses i")
  end
end

return {
  on_data = function(context, state)
    context.columns = dataset_tensors.of(state.data.train.loader)
    for i, column in ipairs(context.columns or {}) do
      look(context, column.tensor, ("the training data, tensor %s"):format(column.name or i))
    end
    local first = (context.columns or {})[1]
    if first and not context.broken then check_constant(context, first) end
  end,
  before = function(context, state)
    check_alike(context, state.data.train.loader)
    if not context.broken then check_answers(context) end
    if context.columns then return end
    local whole = context.whole or context.batch
    for _, leaf in ipairs(batch_samples.leaves(whole)) do
      if c.is_tensor(leaf.value) then look(context, leaf.value, leaf.path) end
    end
  end,
}
