--- stdlib/dist/Reducer.lua: reduces gradients over the ranks, in buckets.
--
-- Gradients of one dtype and device are sent together, up to `bucket_cap_mb`, the last parameters
-- first, and replaced by the sums. A parameter that no rank used keeps `grad = nil`. Reductions are
-- plain sums in the order of the transport: the loss was multiplied by the weights before backward.
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local report_staged = require "ltrain.dist.report_staged"

local Reducer = class.extend(nil, "Reducer")

local PLANS <const> = 16 -- sets of used parameters whose buffers are kept

local OPTIONS <const> = {
  bucket_cap_mb = { type = "number", default = 25, above = 0,
    doc = "megabytes of gradients per message" },
  comm_hook = { type = "function|string",
    doc = "fn(buffer) returns the sum of all ranks' buffers; or 'bf16': send them in bf16" },
}

Reducer.options = OPTIONS

--- Reducer{bucket_cap_mb = 25, comm_hook = nil}
function Reducer:init(options)
  local o = config.check(options, OPTIONS, "dist.ddp")
  self.cap = buckets.bytes(o.bucket_cap_mb)
  self.hook = o.comm_hook
  self.compressed = o.comm_hook == "bf16"
  if type(o.comm_hook) == "string" and not self.compressed then
    errors.blame("dist.ddp: comm_hook must be a function or 'bf16': got '%s'",
      o.comm_hook)
  end
  self.plans = setmetatable({}, { __mode = "k" })
end

-- Buckets. Each is { parameters =, count =, dtype = }, and with a hook { flat =, wire =, views = }:
-- `wire` is what travels.

-- The argument of a hook: the gradients in one row, and where each is in it.
local function make_row(bucket)
  local device = bucket.parameters[1].device
  bucket.flat = c.zeros({ bucket.count }, { dtype = bucket.dtype, device = device })
  bucket.wire = bucket.compressed
    and c.zeros({ bucket.count }, { dtype = "bf16", device = device }) or bucket.flat
  bucket.views = {}
  local at = 1
  for i, parameter in ipairs(bucket.parameters) do
    local n = parameter:numel()
    bucket.views[i] = bucket.flat:narrow(1, at, n):reshape(parameter.shape)
    at = at + n
  end
end

local function make_plan(self, parameters, used)
  local plan = buckets.split(parameters, used, self.cap)
  for _, bucket in ipairs(plan) do
    bucket.compressed = self.compressed and bucket.dtype ~= "bf16" and bucket.dtype ~= "f16"
    if self.hook then make_row(bucket) end
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
  local used = buckets.used(parameters, missing)
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

-- Through a hook the gradients travel as one row, of which they are views from then on.
local function reduce_row(self, bucket, scale)
  c.dist.pack(bucket.parameters, bucket.wire)
  if self.compressed then
    collectives.all_reduce_(bucket.wire)
  else
    local sum = self.hook(bucket.wire)
    check_sum(bucket, sum)
    if sum ~= bucket.wire then bucket.wire:copy_(sum) end
  end
  if bucket.wire ~= bucket.flat then bucket.flat:copy_(bucket.wire) end
  if scale ~= 1 then bucket.flat:mul_(scale) end
  for i, parameter in ipairs(bucket.parameters) do parameter.grad = bucket.views[i] end
end

--- Replaces the gradients of a list of parameters by the sums over all ranks, divided by `total`.
--- `missing`: how many gradients are nil, over all ranks (the same on every rank). `key`: a table
--- that identifies this list from step to step; its buffers are kept.
function Reducer:reduce(parameters, total, missing, key)
  local _ <close> = c.no_grad()
  for _, bucket in ipairs(plan_of(self, parameters, key or parameters, missing)) do
    if self.hook then
      reduce_row(self, bucket, 1.0 / total)
    else
      report_staged(c.dist.reduce(bucket.parameters, 1.0 / total))
    end
  end
end

return Reducer
