--- stdlib/dist/hooks/Hook.lua: lt.dist.hooks.Hook: a communication hook with state: how gradients
--- are compressed on their way between the ranks. The base class.
--
-- A hook gets this rank's part of the mean gradient, all of a dtype in one row, and replaces it by
-- the sum of what the ranks have sent. With error feedback (Seide et al. 2014; Karimireddy et al.
-- 2019) it keeps what it has not sent, the residual, and adds it to the gradients of the next step:
-- what was sent so far and the residuals of all ranks add up to the gradients so far.
--
-- State belongs to parameters, not to buckets, and is saved by their names: other buckets, or
-- another number of ranks, do not lose it. It changes only when all gradients of a step are finite:
-- a step that is not taken leaves no trace.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local parts = require "ltrain.core.parts"

local Hook = class.extend(nil, "Hook")

Hook.extend = class.extend

-- The stream of random numbers of hooks, behind those of runtime/base/random.h: draws do not shift
-- those of the script.
local STREAM <const> = 11

local ROWS <const> = {
  error_feedback = { type = "boolean", default = true,
    doc = "add what was not sent to the gradients of the next step" },
  start = { type = "integer", default = 0, min = 0,
    doc = "number of first steps whose gradients are not compressed" },
}

--- Returns rows of options for a subclass: its own and those of all hooks.
function Hook.rows(own)
  local rows = {}
  for name, row in next, ROWS do rows[name] = row end
  for name, row in next, own or {} do rows[name] = row end
  return rows
end

--- Its options.
Hook.options = Hook.rows()

--- The name that checkpoints and messages call it by.
Hook.name = "hook"

--- Whether all gradients of a dtype are one bucket, not buckets of `bucket_cap_mb`: fewer messages.
Hook.takes_all = true

--- Whether something is kept from step to step. A hook that keeps nothing has no `commit`.
Hook.has_state = true

--- The dtype in which floats are sent ("f16", "bf16"); nil: that of the gradients.
Hook.wire = nil

--- What the gradients are multiplied by (a GradScaler's scale). Residuals do not have this factor.
Hook.loss_scale = 1

--- hooks.topk{ratio = 0.01, error_feedback = true, ...}
function Hook:init(options)
  for name, value in next, config.check(options, self.options, "dist.hooks." .. self.name) do
    self[name] = value
  end
  self:reset()
end

--- Forgets all state.
function Hook:reset()
  self._kept = setmetatable({}, { __mode = "k" }) -- by parameter: { count =, residual =, ... }
end

--- A subclass must define it: replaces `x` [n], this rank's part of the mean gradient and its
--- residual, by the sum of what all ranks of `group` (nil: all) send; returns what was not sent,
--- [n]. `bucket`: { parameters =, step = number of steps before, ... }, a table in which a subclass
--- may keep what belongs to it.
function Hook:compress(x, bucket, group) -- luacheck: ignore
  error "compress is not defined"
end

--- Called after a step whose gradients are finite: a subclass stores the state that follows from
--- it.
function Hook:commit(bucket) end -- luacheck: ignore

-- What subclasses use.

--- What is kept of a parameter, a table: `count`, the number of its steps, and a subclass's own.
function Hook:kept(parameter)
  local kept = self._kept[parameter]
  if not kept then
    kept = { count = 0 }
    self._kept[parameter] = kept
  end
  return kept
end

--- Moves what is kept of parameters under a name into tensors of this bucket, `places[i]` of
--- parameter i (nil: none). Returns a list of the numbers of those of which nothing is kept yet.
function Hook:adopt(bucket, name, places)
  local new = {}
  for i, parameter in ipairs(bucket.parameters) do
    local kept, place = self:kept(parameter), places[i]
    if place and kept[name] ~= place then
      if kept[name] then place:copy_(kept[name]:to(place.dtype)) else new[#new + 1] = i end
      kept[name] = place
    end
  end
  return new
end

--- The sum of x over the ranks, in place, sent in the dtype `wire`.
function Hook:all_reduce_(x, group)
  if not self.wire or x.dtype == self.wire then
    return collectives.all_reduce_(x, { group = group })
  end
  return x:copy_(collectives.all_reduce_(x:to(self.wire), { group = group }))
end

--- x as the other ranks get it: rounded to the dtype `wire`.
function Hook:rounded(x) return self.wire and x:to(self.wire) or x end

--- The number of ranks of a group (nil: of all).
function Hook.ranks_of(group) return c.dist.size(group and group._handle) end

--- This rank's number in it, from 0.
function Hook.rank_in(group) return c.dist.rank(group and group._handle) end

--- Returns draw(), whose random numbers are the same on all ranks, and others in each step.
function Hook.draw(seed, step, draw)
  local before = c.runtime.rng_get()
  local _ <close> = setmetatable({}, { __close = function() c.runtime.rng_set(before) end })
  c.runtime.rng_set { seed = seed, stream = STREAM, batch = step, ordinal = 0 }
  return draw()
end

--- Views of a row [n], one of the shape of each parameter of a bucket.
function Hook.views(bucket, row)
  local views, at = {}, 1
  for i, parameter in ipairs(bucket.parameters) do
    local n = parameter:numel()
    views[i] = row:narrow(1, at, n):reshape(parameter.shape)
    at = at + n
  end
  return views
end

-- Steps.

-- The rows of a bucket: `flat` in the dtype of the gradients, which are views of it; `work`, what
-- is computed with: f32 for those in 16 bits.
local function make_rows(bucket)
  local device = bucket.parameters[1].device
  bucket.flat = c.zeros({ bucket.count }, { dtype = bucket.dtype, device = device })
  bucket.work = bucket.flat
  if bucket.dtype == "f16" or bucket.dtype == "bf16" then
    bucket.work = c.zeros({ bucket.count }, { dtype = "f32", device = device })
  end
  bucket.gradients = Hook.views(bucket, bucket.flat)
end

-- Adds the residual to the gradients.
local function add_residual(self, bucket)
  if not bucket.residual then
    bucket.residual = c.zeros_like(bucket.work)
    bucket.residuals = Hook.views(bucket, bucket.residual)
  end
  for _, i in ipairs(self:adopt(bucket, "residual", bucket.residuals)) do
    bucket.residuals[i]:zero_()
  end
  local scale = self.loss_scale
  bucket.work:add_(scale == 1 and bucket.residual or bucket.residual * scale)
end

local function run(self, bucket, group)
  bucket.step, bucket.left = self:kept(bucket.parameters[1]).count, nil
  bucket.is_compressed = bucket.step >= self.start
  if not bucket.is_compressed then return self:all_reduce_(bucket.work, group) end
  if self.error_feedback then add_residual(self, bucket) end
  bucket.left = self:compress(bucket.work, bucket, group)
end

local function are_finite(plan)
  for _, bucket in ipairs(plan) do
    if not c.grads_norm({ bucket.work }, math.huge):isfinite():item() then return false end
  end
  return true
end

-- Stores the state that follows from a step.
local function store(self, bucket)
  if bucket.is_compressed then
    if self.error_feedback then
      bucket.residual:copy_(bucket.left)
      if self.loss_scale ~= 1 then bucket.residual:mul_(1 / self.loss_scale) end
    end
    self:commit(bucket)
  end
  for _, parameter in ipairs(bucket.parameters) do
    local kept = self:kept(parameter)
    kept.count = kept.count + 1
  end
end

--- Replaces the gradients of a step, of the buckets of a Reducer's plan, by the sums over the ranks
--- of `group`, times `scale`.
function Hook:reduce(plan, scale, group)
  local _ <close> = c.autocast(false)
  for _, bucket in ipairs(plan) do
    if not bucket.flat then make_rows(bucket) end
    c.dist.pack(bucket.parameters, bucket.work)
    if scale ~= 1 then bucket.work:mul_(scale) end
    run(self, bucket, group)
  end
  local stores = self.has_state and are_finite(plan)
  for _, bucket in ipairs(plan) do
    if stores then store(self, bucket) end
    bucket.left = nil
    if bucket.work ~= bucket.flat then bucket.flat:copy_(bucket.work) end
    for i, parameter in ipairs(bucket.parameters) do parameter.grad = bucket.gradients[i] end
  end
end

-- State.

--- What a subclass keeps of a parameter that is the same on all ranks: names of fields.
Hook.shared_fields = {}

--- The state that this rank has of a module's parameters, by their names: { hook =, world_size =,
--- counts =, shared = { field = { name = tensor } }, ranks = { ["0"] = { name = residual } } }.
--- `shared` is the same on all ranks; in `ranks` is this rank's alone.
function Hook:state_dict(module)
  local saved = { hook = self.name, world_size = c.dist.size(), counts = {}, shared = {} }
  local residuals = {}
  for _, field in ipairs(self.shared_fields) do saved.shared[field] = {} end
  for name, parameter in module:named_parameters() do
    local kept = self._kept[parameter]
    if kept then
      saved.counts[name], residuals[name] = kept.count, kept.residual
      for _, field in ipairs(self.shared_fields) do saved.shared[field][name] = kept[field] end
    end
  end
  saved.ranks = { [tostring(c.dist.rank())] = residuals }
  return saved
end

-- Of the residuals of all ranks this rank's; of another number of ranks an equal part of their sum,
-- so that what is still to be sent is the same.
local function residual_of(saved, name)
  local ranks = c.dist.size()
  if saved.world_size == ranks then
    local own = saved.ranks[tostring(c.dist.rank())]
    return own and parts.whole(own[name])
  end
  local sum
  for rank = 0, saved.world_size - 1 do
    local own = saved.ranks[tostring(rank)]
    local residual = own and parts.whole(own[name])
    if residual then sum = sum and sum:add_(residual) or residual:clone() end
  end
  return sum and sum:mul_(1 / ranks)
end

--- Restores it. `saved` has the residuals of all ranks, or of this one.
function Hook:load_state_dict(saved, module)
  if saved.hook ~= self.name then
    errors.blame("dist.hooks.%s: load_state_dict: the state is that of %s", self.name,
      errors.show(saved.hook))
  end
  self:reset()
  local _ <close> = c.no_grad()
  for name, parameter in module:named_parameters() do
    if saved.counts[name] then
      local kept, residual = self:kept(parameter), residual_of(saved, name)
      kept.count = saved.counts[name]
      kept.residual = residual and residual:to(parameter.device):clone()
      for _, field in ipairs(self.shared_fields) do
        local value = saved.shared[field] and saved.shared[field][name]
        kept[field] = value and parts.whole(value):to(parameter.device):clone()
      end
    end
  end
end

return Hook
