--- stdlib/dist/Reducer.lua: reduces gradients over the ranks, in buckets.
--
-- Gradients of one dtype and device are sent together, up to `bucket_cap_mb`, and replaced by the
-- sums. A parameter that no rank used keeps `grad = nil`. Reductions are plain sums in the order of
-- the transport: the loss was multiplied by the weights before backward.
--
-- Either all at once (reduce), the last parameters first, or while backward runs (expect, finish),
-- each bucket as soon as its gradients are complete (S. Li and others, PyTorch Distributed, 2020).
-- The order of the buckets, which must be the same on all ranks, is then that in which rank 0's
-- first backward completed the gradients.
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local hooks = require "ltrain.dist.hooks.registry"
local staging_warning = require "ltrain.dist.staging_warning"

local Reducer = class.extend(nil, "Reducer")

local PLANS <const> = 16 -- sets of used parameters whose buffers are kept

local OPTIONS <const> = {
  bucket_cap_mb = { type = "number", default = 25, above = 0,
    doc = "megabytes of gradients per message" },
  comm_hook = { type = "function|string|object", check = hooks.check,
    doc = "fn(buffer) returns the sum of all ranks' buffers; or the name or an object of a hook of "
      .. "lt.dist.hooks, 'bf16'" },
  group = { type = "object", doc = "the ranks that have gradients to add; by default all" },
  part_group = { type = "object", doc = "those of them that have the same experts, where experts "
    .. "are divided (lt.parallel.ExpertParallel); by default none but this" },
}

Reducer.options = OPTIONS

--- Reducer{bucket_cap_mb = 25, comm_hook = nil}
function Reducer:init(options)
  local o = config.check(options, OPTIONS, "dist.ddp")
  self.cap = buckets.bytes(o.bucket_cap_mb)
  self.hook, self.group = hooks.make(o.comm_hook), o.group
  self.compresses = hooks.is_object(self.hook)
  self.plans = setmetatable({}, { __mode = "k" })
  self.overlaps = setmetatable({}, { __mode = "k" }) -- of the next finish, by key
  self.finished = setmetatable({}, { __mode = "k" }) -- and of the last
end

-- The group, as the runtime takes it; nil: all ranks.
local function handle_of(self) return self.group and self.group._handle end

-- Buckets. Each is { parameters =, count =, dtype = }, and with a function as hook { flat =, views
-- = }.

-- The argument of a function: the gradients in one row, and where each is in it.
local function make_row(bucket)
  local device = bucket.parameters[1].device
  bucket.flat = c.zeros({ bucket.count }, { dtype = bucket.dtype, device = device })
  bucket.views = {}
  local at = 1
  for i, parameter in ipairs(bucket.parameters) do
    local n = parameter:numel()
    bucket.views[i] = bucket.flat:narrow(1, at, n):reshape(parameter.shape)
    at = at + n
  end
end

local function make_plan(self, parameters, used)
  local takes_all = self.compresses and self.hook.takes_all
  local plan = buckets.split(parameters, used, takes_all and math.huge or self.cap)
  if self.hook and not self.compresses then
    for _, bucket in ipairs(plan) do make_row(bucket) end
  end
  return plan
end

local function is_same(a, b)
  if #a ~= #b then return false end
  for i = 1, #a do
    if not rawequal(a[i], b[i]) then return false end
  end
  return true
end

local function plan_of(self, parameters, key, missing)
  local used = buckets.used(parameters, missing, self.group)
  local plans = self.plans[key]
  if plans and is_same(plans.parameters, parameters) and plans[used] then return plans[used] end
  if not plans or plans.count == PLANS or not is_same(plans.parameters, parameters) then
    plans = { count = 0, parameters = parameters }
    self.plans[key] = plans
  end
  local plan = make_plan(self, parameters, used)
  plans[used], plans.count = plan, plans.count + 1
  return plan
end

local function check_sum(bucket, sum)
  local flat = bucket.flat
  if c.is_tensor(sum) and sum.ndim == 1 and sum:numel() == flat:numel()
    and sum.dtype == flat.dtype then
    return
  end
  errors.blame("comm_hook: must return the sum of all ranks' buffers, [%d] %s: got %s%s",
    flat:numel(), flat.dtype, errors.show(sum), c.is_tensor(sum) and " " .. sum.dtype or "")
end

-- A function gets the gradients as one row, of which they are views from then on.
local function reduce_row(self, bucket, scale)
  c.dist.pack(bucket.parameters, bucket.flat)
  local sum = self.hook(bucket.flat)
  check_sum(bucket, sum)
  if sum ~= bucket.flat then bucket.flat:copy_(sum) end
  if scale ~= 1 then bucket.flat:mul_(scale) end
  for i, parameter in ipairs(bucket.parameters) do parameter.grad = bucket.views[i] end
end

--- Replaces the gradients of a list of parameters by the sums over all ranks, divided by `total`.
--- `missing`: how many gradients are nil, over all ranks (the same on every rank). `key`: a table
--- that identifies this list from step to step; its buffers are kept.
function Reducer:reduce(parameters, total, missing, key)
  local _ <close> = c.no_grad()
  local plan = plan_of(self, parameters, key or parameters, missing)
  if self.compresses then return self.hook:reduce(plan, 1.0 / total, self.group) end
  for _, bucket in ipairs(plan) do
    if self.hook then
      reduce_row(self, bucket, 1.0 / total)
    else
      staging_warning(c.dist.reduce(bucket.parameters, 1.0 / total, handle_of(self)))
    end
  end
end

-- While backward runs.

-- An overlap: { trained = parameters that require grad, planned = the same in the order of buckets,
-- state = the runtime's, is_agreed = whether that order is final }
local function overlap_in(self, trained, from_last, is_agreed)
  local lists, planned = {}, {}
  for i, bucket in ipairs(buckets.split(from_last, "all", self.cap)) do
    lists[i] = bucket.parameters
    table.move(bucket.parameters, 1, #bucket.parameters, #planned + 1, planned)
  end
  return { trained = trained, planned = planned, is_agreed = is_agreed or #lists == 1,
    state = c.dist.overlap(lists, trained, handle_of(self)) }
end

-- That of a list; nil if nothing in it requires grad.
local function overlap_of(self, parameters, key)
  local overlap = self.overlaps[key]
  if overlap and overlap.state:fits(parameters) then return overlap end
  local trained = {}
  for _, parameter in ipairs(parameters) do
    if parameter.requires_grad then trained[#trained + 1] = parameter end
  end
  overlap = #trained > 0 and overlap_in(self, trained, trained) or nil
  self.overlaps[key] = overlap
  return overlap
end

-- All ranks take rank 0's order; parameters that its backward did not reach come last. nil: there
-- was none.
local function agree(self, overlap)
  local own, number = {}, {}
  for i, parameter in ipairs(overlap.trained) do number[parameter] = i end
  for i, k in ipairs(overlap.state:order()) do own[i] = number[overlap.planned[k]] end
  local order = collectives.broadcast(own, { group = self.group })
  if #order == 0 then return overlap end
  local from_last, is_listed = {}, {}
  for _, i in ipairs(order) do is_listed[i] = true end
  for i, parameter in ipairs(overlap.trained) do
    if not is_listed[i] then from_last[#from_last + 1] = parameter end
  end
  for k = #order, 1, -1 do from_last[#from_last + 1] = overlap.trained[order[k]] end
  return overlap_in(self, overlap.trained, from_last, true)
end

--- Whether gradients can be reduced while backward runs: a hook gets whole buckets at the step.
function Reducer:can_overlap() return self.hook == nil end

--- Returns the overlap of the backward that comes, which is the last before finish: its gradients
--- are reduced while it runs if that is between overlap:begin() and the end of what it returns, a
--- value to be closed. `weight`: that of all of this rank's losses. nil: nothing is trained.
function Reducer:expect(parameters, weight, key)
  local overlap = overlap_of(self, parameters, key)
  return overlap and overlap.state:expect(weight)
end

--- Waits until the gradients are the sums over all ranks, divided by the sum of all weights, which
--- it returns with the number of gradients that were nil on this rank. All ranks call it, also
--- without expect. Gradients that were nil are zero now; with a total of 0 they stay nil.
function Reducer:finish(parameters, weight, key)
  local overlap = overlap_of(self, parameters, key)
  if not overlap then return self:add { weight }[1], 0 end
  local total, missing, device = overlap.state:finish(weight)
  staging_warning(device)
  self.finished[key] = overlap
  if total > 0 and not overlap.is_agreed then self.overlaps[key] = agree(self, overlap) end
  return total, missing
end

--- The sums of a list of numbers over the ranks that it reduces over, who all call it.
function Reducer:add(numbers) return c.dist.add(numbers, handle_of(self)) end

--- After finish, where gradients of some rank were nil: those that were nil on all ranks are nil
--- again. All ranks call it.
function Reducer:drop_unused(key)
  local overlap, ranks = self.finished[key], c.dist.size(handle_of(self))
  if not overlap then return end
  for i, count in ipairs(buckets.counts(overlap.state:filled(), self.group)) do
    if count == ranks then overlap.planned[i].grad = nil end
  end
end

return Reducer
