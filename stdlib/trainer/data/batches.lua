--- stdlib/trainer/data/batches.lua: moves a batch to the device and counts its samples.
local Precision = require "ltrain.core.Precision"
local Strategy = require "ltrain.strategies.Strategy"
local errors = require "ltrain.core.errors"
local hook_calls = require "ltrain.trainer.hook_calls"
local tree = require "ltrain.core.tree"

local batches = {}

-- Calls a transfer hook of the data module, else of the module, else `default`.
local function transfer_hook(state, name, batch, ...)
  local data = state.data_module
  if data and data[name] then return (hook_calls.data(state, name, batch, ...)) end
  if state.hooks[name] then return (hook_calls.method(state, name, batch, ...)) end
  return batch
end

--- Finds out once a loop whether batches need anything done to them.
function batches.prepare(state)
  local data = state.data_module
  state.data.converts = state.precision.convert_input ~= Precision.convert_input
  -- On the host a batch is where it belongs.
  local needed = state.data.converts or state.strategy.root_device ~= "cpu"
    or state.strategy.divide_batch ~= Strategy.divide_batch
  for _, name in ipairs { "on_before_batch_transfer", "transfer_batch_to_device",
    "on_after_batch_transfer" } do
    if state.hooks[name] or data and data[name] then needed = true end
  end
  state.data.transfers = needed
end

--- The batch as hooks get it: on its device, unless its parts go to several.
function batches.transfer(state, batch, dataloader_idx)
  if state.strategy.splits_batches then return batch end
  return batches.transfer_part(state, batch, dataloader_idx)
end

--- The batch, or a part of it, as the step gets it.
function batches.transfer_part(state, batch, dataloader_idx)
  if not state.data.transfers then return batch end
  if state.data.converts then batch = state.precision:convert_input(batch) end
  batch = transfer_hook(state, "on_before_batch_transfer", batch, dataloader_idx)
  local data = state.data_module
  if state.hooks.transfer_batch_to_device or data and data.transfer_batch_to_device then
    batch = transfer_hook(state, "transfer_batch_to_device", batch, state.strategy.root_device,
      dataloader_idx)
  else
    batch = state.strategy:batch_to_device(batch)
  end
  batch = transfer_hook(state, "on_after_batch_transfer", batch, dataloader_idx)
  return state.strategy:divide_batch(batch)
end

-- The first size of every tensor in the batch; the second result is another size that was met.
local function first_sizes(batch)
  local size, other
  tree.each(batch, function(leaf)
    if type(leaf) == "userdata" and leaf.shape then
      local n = leaf.shape[1] or 1
      size = size or n
      if n ~= size then other = other or n end
    end
  end)
  return size, other
end

--- Number of samples of the running batch: the first size of its first tensor; nil without one.
function batches.count(state)
  local count = state.loop.batch_count
  if not count then
    local size, other = first_sizes(state.loop.batch)
    if other and not state.data.warned_sizes then
      state.data.warned_sizes = true
      state.trainer:warn(("the batch contains tensors of first size %d and %d: %d is taken as its "
        .. "size; give batch_size to self:log to override it"):format(size, other, size))
    end
    count = size or -1
    state.loop.batch_count = count
  end
  return count >= 0 and count or nil
end

--- The weight of this batch in the epoch mean of a logged value.
function batches.size(state, item)
  if not state.loop.batch then return 1 end
  local count = batches.count(state)
  if not count then
    errors.blame("log: the size of the batch is unknown: give batch_size with '%s'", item.key)
  end
  return count
end

return batches
