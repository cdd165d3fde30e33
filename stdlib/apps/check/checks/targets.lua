--- stdlib/apps/check/checks/targets.lua: targets and ids of the whole data set, and their order.
local batch_samples = require "ltrain.apps.check.batch_samples"
local dataset_tensors = require "ltrain.apps.check.dataset_tensors"

local FEW <const> = 20 -- samples of which no order is asked

-- The leaf of the batch that a tensor of a call holds; nil without one.
local function leaf_of(context, tensor)
  if tensor.dtype:find "f%d" then return nil end
  for _, leaf in ipairs(batch_samples.leaves(context.batch)) do
    local value = leaf.value
    if value.dtype == tensor.dtype and value:numel() == tensor:numel()
      and value:flatten():equal(tensor:flatten()) then
      return leaf
    end
  end
end

-- Raises a finding where ids of a column are outside 0..n - 1.
local function check_range(context, call, ids, n, what, ignored)
  local leaf = leaf_of(context, ids)
  local column = leaf and dataset_tensors.find(context.columns, leaf)
  if not column then return leaf end
  local rows = dataset_tensors.rows(context.columns, column)
  if ignored then rows = rows:masked_fill(rows:eq(ignored), 0) end
  local low, high = rows:min():item(), rows:max():item()
  if low < 0 or high >= n then
    local wrong = rows:lt(0):logical_or(rows:ge(n)):sum():item()
    context.report:error("targets", call.line, ("%s: %s of the data set are %d..%d, and there are "
      .. "%d: 0..%d (%d of them are outside)"):format(call.op, leaf.path, low, high, n, n - 1,
      math.tointeger(wrong)), what)
  end
  return leaf
end

local function check_order(context, state, leaf)
  local loader, column = state.data.train.loader, dataset_tensors.find(context.columns, leaf)
  if not column or #column.tensor.shape ~= 1 then return end
  local labels = dataset_tensors.rows(context.columns, column)
  local n = labels.shape[1]
  if n <= FEW then return end
  local changes = labels:narrow(1, 1, n - 1):ne(labels:narrow(1, 2, n - 1)):sum():item()
  local classes = labels:unique().shape[1]
  if classes == 1 then
    context.report:warn("targets", dataset_tensors.line_of(context),
      ("the %d training samples have "
      .. "one label, %d"):format(n, labels[1]:item()), "check how labels are read: there is only "
      .. "one class")
  elseif classes > 1 and changes == classes - 1 and not loader.shuffle
    and not loader.sampler and not loader.batch_sampler and loader.batch_size < n then
    context.report:warn("targets", dataset_tensors.line_of(context, "DataLoader"), ("the %d "
      .. "training samples are sorted by class (%d classes), and the loader does not shuffle")
      :format(n, math.tointeger(classes)), "set shuffle = true on the training loader")
  end
end

return {
  before = function(context, state)
    if not context.first then return end
    for _, call in ipairs(context.first.calls) do
      local leaf
      if call.op == "cross_entropy" and not call.inputs[2].dtype:find "f%d" then
        local logits = call.inputs[1].shape
        leaf = check_range(context, call, call.inputs[2], logits[#logits == 1 and 1 or 2],
          "give the last layer as many outputs as there are classes, and count them from 0",
          call.args.ignore_index)
      elseif call.op == "embedding" or call.op == "embedding_bag" then
        check_range(context, call, call.inputs[2], call.inputs[1].shape[1],
          "give the embedding as many rows as there are ids, and count them from 0")
      end
      if leaf then check_order(context, state, leaf) end
    end
  end,
}
