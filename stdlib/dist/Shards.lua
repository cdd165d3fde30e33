--- stdlib/dist/Shards.lua: the parameters of an optimizer, cut into a slice a rank.
--
-- Each parameter, as a row of elements, is cut into as many slices as there are ranks; ranks have
-- equally many elements of all parameters together, give or take one. A rank's slice is a tensor
-- [1, n] that shares the parameter's memory (a shard): it is stepped in the parameter's place, by
-- the same slice of its gradient, and what the optimizer keeps for it is a slice of what it would
-- keep for the parameter. After the step one all_gather a bucket gives all ranks all slices.
--
-- The two dims distinguish a state that has an element for each of the shard's, [1, n], from one
-- for the whole parameter, such as a counter [1].
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local parameters_of = require "ltrain.core.parameters_of"
local parts = require "ltrain.core.parts"

local Shards = class.extend(nil, "Shards")

local PLANS <const> = 16 -- sets of used parameters whose buckets are kept

-- All ranks must give the same parameters in the same order: slices of others would be mixed.
local function check_same(optimizer)
  local own = {}
  for g, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      own[#own + 1] = ("%s %s of group %d"):format(group.names[i], errors.show(parameter), g)
    end
  end
  local wanted = collectives.broadcast(own)
  for i = 1, math.max(#own, #wanted) do
    if own[i] ~= wanted[i] then
      errors.blame("configure_optimizers: ranks gave %s other parameters: rank 0 has %s, rank %d "
        .. "%s", errors.show(optimizer), wanted[i] or "nothing more", c.dist.rank(),
        own[i] or "nothing more")
    end
  end
end

--- Shards(optimizer, cap): messages of at most `cap` bytes. All ranks call it.
function Shards:init(optimizer, cap)
  check_same(optimizer)
  self.optimizer, self.cap = optimizer, cap
  self.ranks, self.rank = c.dist.size(), c.dist.rank()
  self.cuts, self.shards = {}, {} -- by parameter
  self.elements = {} -- that each rank has so far
  for r = 1, self.ranks do self.elements[r] = 0 end
  self:follow()
end

-- Cutting.

-- Where the slices of `n` elements begin, and the end of the last. Elements over go to the ranks
-- that have fewest.
local function cut(self, n)
  local each, over = n // self.ranks, n % self.ranks
  local order = {}
  for r = 1, self.ranks do order[r] = r end
  table.sort(order, function(a, b)
    local x, y = self.elements[a], self.elements[b]
    if x ~= y then return x < y end
    return a < b
  end)
  local sizes = {}
  for place, r in ipairs(order) do sizes[r] = each + (place <= over and 1 or 0) end
  local cuts = { 0 }
  for r = 1, self.ranks do
    cuts[r + 1] = cuts[r] + sizes[r]
    self.elements[r] = self.elements[r] + sizes[r]
  end
  return cuts
end

-- This rank's slice: where it begins, and its elements.
local function own_span(self, parameter)
  local cuts = self.cuts[parameter]
  return cuts[self.rank + 1], cuts[self.rank + 2] - cuts[self.rank + 1]
end

-- n elements of a tensor from number `from` on, as a row in the same memory.
local function slice(tensor, from, n)
  return tensor:detach():reshape { 1, tensor:numel() }:narrow(2, from + 1, n)
end

local function add(self, parameter)
  self.cuts[parameter] = cut(self, parameter:numel())
  local from, n = own_span(self, parameter)
  self.shards[parameter] = n > 0 and slice(parameter, from, n) or nil
end

local function count(groups)
  local n = #groups
  for _, group in ipairs(groups) do n = n + #group.params end
  return n
end

--- Cuts parameters that the optimizer has had added since.
function Shards:follow()
  local groups = self.optimizer.param_groups
  if self.followed == count(groups) then return end
  self.followed, self.plans, self.plan_count = count(groups), {}, 0
  self.groups = {}
  for g, group in ipairs(groups) do
    local own = { params = {}, names = {} }
    for i, parameter in ipairs(group.params) do
      if not self.cuts[parameter] then add(self, parameter) end
      local shard = self.shards[parameter]
      if shard then
        own.params[#own.params + 1] = shard
        own.names[#own.names + 1] = group.names[i]
      end
    end
    self.groups[g] = own
  end
end

-- Buckets.

-- The cuts of a bucket's parameters as a tensor, and how many elements the longest row has.
local function complete(self, bucket)
  local all, lengths = {}, {}
  for r = 1, self.ranks do lengths[r] = 0 end
  for _, parameter in ipairs(bucket.parameters) do
    local cuts = self.cuts[parameter]
    table.move(cuts, 1, #cuts, #all + 1, all)
    for r = 1, self.ranks do lengths[r] = lengths[r] + cuts[r + 1] - cuts[r] end
  end
  bucket.cuts = c.tensor(all, { dtype = "i64" }):reshape { #bucket.parameters, self.ranks + 1 }
  bucket.width = math.max(table.unpack(lengths))
  bucket.device = bucket.parameters[1].device
end

-- The buckets of the parameters that have gradients: the same ones on all ranks.
local function plan_of(self, parameters)
  local used = buckets.own_used(parameters)
  if self.plans[used] then return self.plans[used] end
  if self.plan_count == PLANS then self.plans, self.plan_count = {}, 0 end
  local plan = buckets.split(parameters, used, self.cap)
  for _, bucket in ipairs(plan) do complete(self, bucket) end
  self.plans[used], self.plan_count = plan, self.plan_count + 1
  return plan
end

-- What each bucket's parameters are on other ranks, into the parameters.
local function gather_bucket(self, bucket)
  local row = c.empty({ bucket.width }, { dtype = bucket.dtype, device = bucket.device })
  c.dist.pack_shard(bucket.parameters, bucket.cuts, row, self.rank)
  c.dist.unpack_shards(bucket.parameters, bucket.cuts, collectives.all_gather(row), self.rank)
end

-- Stepping.

-- The shards have their slices of the gradients until the result is closed.
local function share_gradients(self)
  for parameter, shard in next, self.shards do
    local grad = parameter.grad
    shard.grad = grad and slice(grad, own_span(self, parameter))
  end
  return setmetatable({}, { __close = function()
    for _, shard in next, self.shards do shard.grad = nil end
  end })
end

-- The optimizer has the shards for parameters until the result is closed.
local function enter(self)
  local groups, before = self.optimizer.param_groups, {}
  for g, group in ipairs(groups) do
    before[g] = { params = group.params, names = group.names }
    group.params, group.names = self.groups[g].params, self.groups[g].names
  end
  return setmetatable({}, { __close = function()
    for g, group in ipairs(groups) do
      group.params, group.names = before[g].params, before[g].names
    end
  end })
end

--- update() steps the shards by their slices of the reduced gradients; then all ranks have the new
--- parameters. All ranks call it.
function Shards:step(update)
  local _ <close> = c.no_grad()
  self:follow()
  local plan = plan_of(self, parameters_of(self.optimizer))
  do
    local _ <close> = share_gradients(self)
    local _ <close> = enter(self)
    update()
  end
  for _, bucket in ipairs(plan) do gather_bucket(self, bucket) end
end

-- State.

-- Whether a value of a shard's state has an element for each of the shard's.
local function is_row(value, shard)
  return c.is_tensor(value) and value.ndim == 2 and has_shape(value, shard)
end

--- What the optimizer's state_dict returns, with parts (core/parts.lua) in the place of rows.
function Shards:parts(state_dict)
  local own, optimizer = self.optimizer.state, self.optimizer
  local by_parameter, shard_of = {}, {}
  for parameter, shard in next, self.shards do by_parameter[parameter] = own[shard] end
  optimizer.state = by_parameter
  local ok, saved = pcall(state_dict, optimizer)
  optimizer.state = own
  if not ok then error(saved, 0) end
  for _, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do shard_of[group.names[i]] = parameter end
  end
  for name, slots in next, saved.state do
    local parameter = shard_of[name]
    for slot, value in next, slots do
      if is_row(value, self.shards[parameter]) then
        slots[slot] = parts.new { shape = parameter.shape, tensor = value,
          from = own_span(self, parameter) }
      end
    end
  end
  return saved
end

-- This rank's rows of a parameter's slots.
local function rows_of(self, parameter, slots)
  local rows, from, n = {}, own_span(self, parameter)
  for slot, value in next, slots do
    if parts.is_tensor(value) and has_shape(value, parameter) then
      rows[slot] = parts.read(value, from, n):reshape { 1, n }:clone()
    else
      rows[slot] = parts.whole(value)
    end
  end
  return rows
end

--- Loads this rank's part of a saved state by the optimizer's load_state_dict.
function Shards:load(load_state_dict, saved)
  local groups, own = {}, { class = saved.class, state = {} }
  load_state_dict(self.optimizer, { class = saved.class, param_groups = saved.param_groups,
    state = {} })
  self:follow() -- groups that were added are in the state
  for g, group in ipairs(self.optimizer.param_groups) do
    groups[g] = {}
    for name, value in next, saved.param_groups[g] do groups[g][name] = value end
    groups[g].params = self.groups[g].names
    for i, parameter in ipairs(group.params) do
      local slots = self.shards[parameter] and saved.state[group.names[i]]
      own.state[group.names[i]] = slots and rows_of(self, parameter, slots) or nil
    end
  end
  own.param_groups = groups
  local _ <close> = enter(self)
  load_state_dict(self.optimizer, own)
end

--- Makes rank 0's state that of all ranks, in parts. All ranks call it.
function Shards:share_state()
  local held, whole = self.optimizer.state, {}
  if not collectives.broadcast(next(held) ~= nil) then return end
  for _, parameter in ipairs(parameters_of(self.optimizer)) do
    whole[parameter] = collectives.broadcast(held[parameter] or false) or nil
  end
  local own = {}
  for parameter, shard in next, self.shards do
    own[shard] = whole[parameter] and rows_of(self, parameter, whole[parameter])
  end
  self.optimizer.state = own
end

return Shards
