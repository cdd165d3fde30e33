--- stdlib/strategies/sharded/ShardedOptimizer.lua: an optimizer that steps this rank's shards, and
--- keeps a state for them alone.
local Shards = require "ltrain.strategies.sharded.Shards"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local parameters_of = require "ltrain.core.parameters_of"
local parts = require "ltrain.core.parts"

local ShardedOptimizer = class.extend(nil, "ShardedOptimizer")

-- All ranks must give the same parameters in the same order: slices of others would be mixed.
local function check_same(optimizer, ranks)
  local own = {}
  for g, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      own[#own + 1] = ("%s %s of group %d"):format(group.names[i], errors.show(parameter), g)
    end
  end
  local wanted = collectives.broadcast(own, { group = ranks })
  for i = 1, math.max(#own, #wanted) do
    if own[i] ~= wanted[i] then
      errors.blame("configure_optimizers: ranks gave %s other parameters: rank 0 has %s, rank %d "
        .. "%s", errors.show(optimizer), wanted[i] or "nothing more", c.dist.rank(),
        own[i] or "nothing more")
    end
  end
end

--- ShardedOptimizer(optimizer, shards, cap, has_whole): messages of at most `cap` bytes;
--- `has_whole`: gradients are those of whole parameters, on all ranks. All ranks call it.
function ShardedOptimizer:init(optimizer, shards, cap, has_whole)
  check_same(optimizer, shards.replicas.group)
  self.optimizer, self.shards, self.cap, self.has_whole = optimizer, shards, cap, has_whole
  self:follow()
  self:share_state()
end

local function count(groups)
  local n = #groups
  for _, group in ipairs(groups) do n = n + #group.params end
  return n
end

--- Cuts parameters that the optimizer has had added since.
function ShardedOptimizer:follow()
  local groups = self.optimizer.param_groups
  if self.followed == count(groups) then return end
  self.followed = count(groups)
  for _, group in ipairs(groups) do
    for i, parameter in ipairs(group.params) do self.shards:add(parameter, group.names[i]) end
  end
end

--- The groups of the optimizer with this rank's shards in place of the parameters: all, or those
--- for which takes(parameter, shard) is true.
function ShardedOptimizer:groups(takes)
  self:follow()
  local list = {}
  for g, group in ipairs(self.optimizer.param_groups) do
    local own = { params = {}, names = {} }
    for i, parameter in ipairs(group.params) do
      local shard = self.shards.of[parameter]
      if shard.n > 0 and (not takes or takes(parameter, shard)) then
        own.params[#own.params + 1] = shard.tensor
        own.names[#own.names + 1] = group.names[i]
      end
    end
    list[g] = own
  end
  return list
end

--- Whether the next step updates parameters of a dtype, on any rank.
function ShardedOptimizer:steps(dtype)
  for _, parameter in ipairs(parameters_of(self.optimizer)) do
    if parameter.dtype == dtype and self.shards.of[parameter].steps then return true end
  end
  return false
end

-- The optimizer has the shards for parameters until the result is closed.
local function enter(self)
  local groups, before, own = self.optimizer.param_groups, {}, self:groups()
  for g, group in ipairs(groups) do
    before[g] = { params = group.params, names = group.names }
    group.params, group.names = own[g].params, own[g].names
  end
  return setmetatable({}, { __close = function()
    for g, group in ipairs(groups) do
      group.params, group.names = before[g].params, before[g].names
    end
  end })
end

-- Parameters whose shards were stepped: whole ones get the other ranks' slices; the others have new
-- values when they are gathered next.
local function gather_kept(self)
  local kept = {}
  for _, parameter in ipairs(parameters_of(self.optimizer)) do
    local shard = self.shards.of[parameter]
    if not shard.is_kept then
      c.dist.changed(parameter)
    elseif shard.steps then
      kept[#kept + 1] = shard
    end
  end
  for _, group in ipairs(Shards.group(kept, self.cap)) do
    c.dist.wait(c.dist.gather_shards(group.replicas.inner, group.parameters, group.cuts, nil,
      "parameters"))
  end
end

-- The shards have their slices of whole gradients until the result is closed.
local function share_gradients(self)
  self:follow()
  local list = parameters_of(self.optimizer)
  for _, parameter in ipairs(list) do
    local shard, grad = self.shards.of[parameter], parameter.grad
    shard.steps = grad ~= nil
    shard.tensor.grad = grad and Shards.slice(shard, grad):to(shard.tensor.device)
      :to(shard.tensor.dtype)
  end
  return setmetatable({}, { __close = function()
    for _, parameter in ipairs(list) do self.shards.of[parameter].tensor.grad = nil end
  end })
end

-- fn(shard) for the shards that are stepped apart.
local function each_apart(self, fn)
  for _, parameter in ipairs(parameters_of(self.optimizer)) do
    local shard = self.shards.of[parameter]
    if shard.steps and shard.apart then fn(shard) end
  end
end

--- update() steps the shards by their gradients; then all ranks have the new parameters where these
--- are whole. All ranks call it.
function ShardedOptimizer:step(update)
  local _ <close> = c.no_grad()
  do
    local _ <close> = self.has_whole and share_gradients(self) or nil
    each_apart(self, Shards.read)
    local _ <close> = enter(self)
    local _ <close> = self.shards.offload:scope() -- of a new state
    update()
  end
  each_apart(self, Shards.write)
  gather_kept(self)
end

-- State.

-- Whether a value of a shard's state has an element for each of the shard's.
local function is_row(value, shard)
  return c.is_tensor(value) and value.ndim == 2 and has_shape(value, shard.tensor)
end

-- fn(shard, name) for each parameter that this rank has a slice of.
local function each_shard(self, fn)
  self:follow()
  for _, group in ipairs(self.optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      local shard = self.shards.of[parameter]
      if shard.n > 0 then fn(shard, group.names[i]) end
    end
  end
end

--- What the optimizer's state_dict returns, with parts (core/parts.lua) in the place of rows.
function ShardedOptimizer:parts(state_dict, own_tensors)
  local optimizer, own = self.optimizer, self.optimizer.state
  local by_parameter, by_name = {}, {}
  each_shard(self, function(shard, name)
    by_parameter[shard.parameter], by_name[name] = own[shard.tensor], shard
  end)
  optimizer.state = by_parameter
  local _ <close> = self.shards.offload:scope() -- of the copies
  local ok, saved = pcall(state_dict, optimizer, own_tensors)
  optimizer.state = own
  if not ok then error(saved, 0) end
  for name, slots in next, saved.state do
    local shard = by_name[name]
    for slot, value in next, slots do
      if is_row(value, shard) then
        slots[slot] = parts.new { shape = shard.parameter.shape, tensor = value, from = shard.from }
      end
    end
  end
  return saved
end

-- This rank's row of a tensor of a state, as one that has not been read (core/parts.lua): who reads
-- it has a tensor of its own, which is copied once, from the state or from a file.
local Row <const> = {}
Row.__index = Row

function Row:read(from, n)
  local value <const>, offload = self.value, self.shard.offload
  local row = parts.read(value, self.shard.from + from, n)
  return c.is_tensor(value) and offload:copy(row, row.dtype) or offload:take(row, row.dtype)
end

-- The slots of a parameter with this rank's rows.
local function rows_of(shard, slots)
  local rows = {}
  for slot, value in next, slots do
    local is_divided = parts.is_tensor(value) and has_shape(value, shard.parameter)
    rows[slot] = is_divided and setmetatable({ value = value, shard = shard, dtype = value.dtype,
      shape = { 1, shard.n }, ndim = 2 }, Row) or value
  end
  return rows
end

--- Loads this rank's part of a saved state by the optimizer's load_state_dict.
function ShardedOptimizer:load(load_state_dict, saved)
  local own = { class = saved.class, state = {}, param_groups = {} }
  load_state_dict(self.optimizer, { class = saved.class, param_groups = saved.param_groups,
    state = {} })
  each_shard(self, function(shard, name) -- groups that were added are in the state
    local slots = saved.state[name]
    own.state[name] = slots and rows_of(shard, slots) or nil
  end)
  for g, group in ipairs(self:groups()) do
    own.param_groups[g] = {}
    for name, value in next, saved.param_groups[g] do own.param_groups[g][name] = value end
    own.param_groups[g].params = group.names
  end
  local _ <close> = enter(self)
  local _ <close> = self.shards.offload:scope()
  load_state_dict(self.optimizer, own)
end

--- Makes the state of rank 0, of those that share a parameter, that of all of them, in parts. All
--- ranks call it.
function ShardedOptimizer:share_state()
  local before, own = self.optimizer.state, {}
  local to = { group = self.shards.replicas.group }
  if not collectives.broadcast(next(before) ~= nil, to) then return end
  for _, parameter in ipairs(parameters_of(self.optimizer)) do
    local shard = self.shards.of[parameter]
    local slots = collectives.broadcast(before[parameter] or false,
      { group = shard.replicas.group })
    if slots and shard.n > 0 then own[shard.tensor] = parts.whole(rows_of(shard, slots)) end
  end
  self.optimizer.state = own
end

return ShardedOptimizer
