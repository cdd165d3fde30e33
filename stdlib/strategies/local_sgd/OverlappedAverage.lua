--- stdlib/strategies/local_sgd/OverlappedAverage.lua: an average of weights over the ranks that is
--- on its way while training continues.
--
-- What is averaged are the weights as they are when it begins; those of parameters that no rank has
-- changed are left out of the result, as rounding would change them.
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"

local OverlappedAverage = class.extend(nil, "OverlappedAverage")

-- The tensors of a list in rows, one of each dtype and device, which are being averaged: { row =,
-- handle =, views = by the tensor's number }.
local function send(tensors, group)
  local number, rows = {}, {}
  for i, tensor in ipairs(tensors) do number[tensor] = i end
  for k, bucket in ipairs(buckets.split(tensors, "all", math.huge)) do
    local parts, views, at = {}, {}, 1
    for i, tensor in ipairs(bucket.parameters) do parts[i] = tensor:reshape { tensor:numel() } end
    local row = c.cat(parts)
    for _, tensor in ipairs(bucket.parameters) do
      local n = tensor:numel()
      views[number[tensor]] = row:narrow(1, at, n):reshape(tensor.shape)
      at = at + n
    end
    rows[k] = { row = row, views = views }
    rows[k].handle = collectives.all_reduce_(row, { op = "mean", group = group, async = true })
  end
  return rows
end

--- OverlappedAverage(parameters, changed, group): begins it; all ranks do. `changed`: the set of
--- those that this rank has changed.
function OverlappedAverage:init(parameters, changed, group)
  local _ <close> = c.no_grad()
  local flags = {}
  self.parameters, self.before = parameters, {}
  for i, parameter in ipairs(parameters) do
    self.before[i] = parameter:detach():clone()
    flags[i] = changed[parameter] and 1 or 0
  end
  self._rows = send(self.before, group)
  self._counts = collectives.all_reduce(c.tensor(flags, { dtype = "i64" }),
    { group = group, async = true })
end

--- One that has arrived, from a checkpoint.
function OverlappedAverage.arrived(parameters, before, means)
  return setmetatable({ parameters = parameters, before = before, means = means },
    OverlappedAverage)
end

--- Waits for it: from then on `parameters` are those that some rank had changed, `means` their
--- means and `before` the weights of this rank that went into them. Returns itself.
function OverlappedAverage:wait()
  if self.means then return self end
  local counts, means = self._counts:wait():tolist(), {}
  for _, row in ipairs(self._rows) do
    row.handle:wait()
    for i, view in next, row.views do means[i] = view end
  end
  local parameters, before = {}, {}
  self.means = {}
  for i, count in ipairs(counts) do
    if count > 0 then
      local n = #parameters + 1
      parameters[n], before[n], self.means[n] = self.parameters[i], self.before[i], means[i]
    end
  end
  self.parameters, self.before, self._rows, self._counts = parameters, before, nil, nil
  return self
end

return OverlappedAverage
