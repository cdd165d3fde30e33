--- stdlib/strategies/data_parallel.lua: what DP and DDP2 do with a batch: it is cut along dim 1
--- into a part for each device, the module is copied to each, and outputs are gathered on the
--- first.
--
-- As in PyTorch's DataParallel, parts are those of `chunk`, and the first device computes with the
-- module itself. On another device the module is the same object, whose parameters and buffers are
-- copies meanwhile: those of parameters are recorded, so that backward adds their gradients up on
-- the first device; what a step writes into those of buffers is dropped.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local data_parallel = {}

local BESIDE <const> = { non_blocking = true }

-- Devices.

--- The devices of `count` parts, by the numbers that an accelerator has for ranks.
function data_parallel.devices(accelerator, count)
  local devices = {}
  for k = 1, count do devices[k] = accelerator:device(k - 1) end
  return devices
end

--- What to note of devices that are all the same one; nil: they are not.
function data_parallel.note(name, devices)
  for _, device in ipairs(devices) do
    if device ~= devices[1] then return nil end
  end
  return #devices > 1 and ("strategy = '%s': the %d parts of each batch are computed on %s, one "
    .. "after the other; strategy = 'ddp' computes on %d processes"):format(name, #devices,
    devices[1], #devices) or nil
end

--- Rejects deterministic = "world", whose steps run in slices of their own.
function data_parallel.check(trainer, name)
  if trainer.options.deterministic ~= "world" then return end
  errors.blame("strategies.%s: deterministic = 'world' cuts batches itself, by ranks: write "
    .. "strategy = 'ddp', or remove it", name)
end

-- What a device's kind alone means from now on.
local function use(device)
  if device ~= "cpu" then c.runtime.current_device(device, device) end
end

-- The copy of a tensor; one that is there already is the tensor itself, unless it is a buffer.
local function copy_of(item, device)
  local value = item.value
  if item.buffer then
    local own = value:detach()
    return value.device == device and own:clone() or own:to(device, BESIDE)
  end
  if value.device == device then return value end
  local copy = c.runtime.copied_parameter(value:to(device, BESIDE))
  if value.requires_grad and not copy.requires_grad then copy:requires_grad_() end -- in evaluation
  return copy
end

-- The places of a module's tensors, and what is there meanwhile: a list of { item, tensor }.
local function copies_of(module, device)
  local plan, copies = {}, {}
  for _, entry in ipairs((walk.modules(module))) do
    for _, item in ipairs(entry.tensors) do
      local copy = copies[item.value] or copy_of(item, device)
      copies[item.value] = copy
      plan[#plan + 1] = { item, copy }
    end
  end
  return plan
end

--- Until the result is closed, the module of a strategy is a copy on its device number `k`.
function data_parallel.replica(strategy, k)
  if k == 1 then return nil end
  local first, device = strategy.root_device, strategy.devices[k]
  local plan = copies_of(strategy.module, device)
  for _, step in ipairs(plan) do rawset(step[1].holder, step[1].key, step[2]) end
  strategy.root_device = device
  use(device)
  return setmetatable({}, { __close = function()
    for _, step in ipairs(plan) do rawset(step[1].holder, step[1].key, step[1].value) end
    strategy.root_device = first
    use(first)
  end })
end

-- Batches.

local function is_plain(value) return type(value) == "table" and getmetatable(value) == nil end

-- The first size of the first tensor of a batch, of those that are in the fewest tables; nil: there
-- is none.
local function size_of(batch)
  local level = { batch }
  while #level > 0 do
    local below = {}
    for _, value in ipairs(level) do
      if c.is_tensor(value) and value.ndim > 0 then return value.shape[1] end
      for _, field in tree.pairs(is_plain(value) and value or {}) do below[#below + 1] = field end
    end
    level = below
  end
end

data_parallel.size_of = size_of

-- Whether a list has a value for each sample, such as texts or boxes; a list of tensors that are
-- cut themselves has not.
local function is_by_sample(list, size)
  if #list ~= size then return false end
  for _, value in ipairs(list) do
    if c.is_tensor(value) or is_plain(value) and size_of(value) == size then return false end
  end
  return true
end

-- Samples `from` to `last` of what has one for each of `size`; what has not is in every part, and
-- noted in `others`.
local function cut(value, from, last, size, others)
  if c.is_tensor(value) then
    if value.shape[1] == size then return value:narrow(1, from, last - from + 1) end
    others.size = value.shape[1] or others.size
    return value
  elseif not is_plain(value) then
    return value
  elseif is_by_sample(value, size) then
    return table.move(value, from, last, 1, {})
  end
  local part = {}
  for key, field in next, value do part[key] = cut(field, from, last, size, others) end
  return part
end

--- Cuts a batch into at most `count` parts: a list of { batch =, size = samples }. The second
--- result is a text of tensors that are in every part, or nil.
function data_parallel.scatter(batch, count)
  local size = size_of(batch)
  if not size or size < 2 then return { { batch = batch, size = size or 1 } } end
  local parts, others, each = {}, {}, (size + count - 1) // count
  for from = 1, size, each do
    local last = math.min(from + each - 1, size)
    parts[#parts + 1] = { size = last - from + 1, batch = cut(batch, from, last, size, others) }
  end
  return parts, others.size and ("the batch has tensors of first size %d and %d: those of %d are "
    .. "divided among the devices, the others are on each"):format(size, others.size, size) or nil
end

--- Cuts a batch into `count` parts whose sizes differ by one sample at most, or into as many as it
--- has samples: a list of batches. Tensors are views; what has not a value for each sample is in
--- every part.
function data_parallel.split(batch, count)
  local size = size_of(batch) or 1
  count = math.max(math.min(count, size), 1)
  if count == 1 then return { batch } end
  local parts, from = {}, 1
  for k = 1, count do
    local last = from + size // count + (k <= size % count and 1 or 0) - 1
    parts[k] = cut(batch, from, last, size, {})
    from = last + 1
  end
  return parts
end

-- Outputs.

-- One leaf of the outputs of all parts.
local function join(leaves, device)
  local first = leaves[1]
  if c.is_tensor(first) then
    for i, leaf in ipairs(leaves) do
      leaf = leaf:to(device, BESIDE)
      leaves[i] = leaf.ndim == 0 and leaf:reshape { 1 } or leaf
    end
    return c.cat(leaves, 1)
  elseif math.type(first) then
    return c.tensor(leaves):to(device)
  end
  return leaves
end

local function kind_of(value)
  return is_plain(value) and "a table" or math.type(value) and "a number" or errors.show(value)
end

-- What all parts have at one place of their outputs.
local function gather(values, device, name, path)
  local first = values[1]
  for i = 2, #values do
    local is_same = is_plain(first) == is_plain(values[i])
      and c.is_tensor(first) == c.is_tensor(values[i])
      and (math.type(first) ~= nil) == (math.type(values[i]) ~= nil)
    if not is_same then
      errors.blame("%s: parts of a batch returned different things as %s: %s and %s", name,
        path, kind_of(first), kind_of(values[i]))
    end
  end
  if not is_plain(first) then return join(values, device) end
  local all = {}
  for key in next, first do
    local fields = {}
    for i, value in ipairs(values) do
      if value[key] == nil then
        errors.blame("%s: not every part of a batch returned %s.%s", name, path, tostring(key))
      end
      fields[i] = value[key]
    end
    all[key] = gather(fields, device, name, ("%s.%s"):format(path, tostring(key)))
  end
  return all
end

--- The outputs of all parts, a list, as one on `device`: tensors are concatenated along dim 1,
--- those without dims become a vector, and so do numbers; other values become a list. `name`: the
--- step.
function data_parallel.gather(outputs, device, name)
  return gather(table.move(outputs, 1, #outputs, 1, {}), device, name, "its result")
end

--- The mean of a vector with an element for each part, weighted by `weights`; what is not a vector
--- of floats stays as it is.
function data_parallel.mean(values, weights)
  if not c.is_tensor(values) or not is_float(values.dtype) then return values end
  local total, is_even = 0, true
  for _, weight in ipairs(weights) do
    total, is_even = total + weight, is_even and weight == weights[1]
  end
  if is_even or total == 0 then return values:mean() end
  local shares = {}
  for i, weight in ipairs(weights) do shares[i] = weight / total end
  shares = c.tensor(shares, { dtype = values.dtype, device = values.device })
  return (values * shares):sum()
end

return data_parallel
