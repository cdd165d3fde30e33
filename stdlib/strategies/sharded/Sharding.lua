--- stdlib/strategies/sharded/Sharding.lua: what a strategy divides among ranks by its stage: the
--- state of optimizers (1), and gradients (2), and parameters (3).
--
-- The ranks are all, or on a mesh those that have the same part of a parameter (Replicas.lua).
-- Each such group shards what it has as if its ranks were all; its votes, gathers and reductions
-- are its own, and those of others do not matter for it: ranks that compute one module together run
-- the same program. A shard of a part (core/cuts.lua) is a slice of it; in a state it is what the
-- slice is of the whole.
local ShardedModule = require "ltrain.strategies.sharded.ShardedModule"
local ShardedOptimizer = require "ltrain.strategies.sharded.ShardedOptimizer"
local Shards = require "ltrain.strategies.sharded.Shards"
local c = require "ltrain.c"
local check_elementwise = require "ltrain.strategies.check_elementwise"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local cuts = require "ltrain.core.cuts"
local gradients_of = require "ltrain.core.gradients_of"
local module_state = require "ltrain.nn.module_state"
local optimizer_guard = require "ltrain.strategies.sharded.optimizer_guard"
local part_meta = require "ltrain.strategies.sharded.part_meta"
local part_state = require "ltrain.parallel.part_state"
local parts = require "ltrain.core.parts"
local slices = require "ltrain.strategies.sharded.slices"
local walk = require "ltrain.core.walk"

local Sharding = class.extend(nil, "Sharding")

--- Sharding{who = the strategy, in errors; stage =, ranks = (Replicas), home = (an Offload),
--- cap = bytes of a message, and the options of sharded/options.lua}
function Sharding:init(o)
  self.who, self.stage, self.ranks, self.home, self.cap = o.who, o.stage, o.ranks, o.home, o.cap
  self.options = o
  self.parted = nil -- shards of what was on the meta device
  self.sharded = nil -- the module, once it is divided
  self.has_whole_gradients = nil
  self.optimizers, self.order = {}, {} -- by optimizer, and the optimizers in order
  self.steps = 0 -- that run: forward or backward
end

local function new_shards(self) return Shards(self.ranks, self.home, self.who) end

--- Whether it has anything of a run.
function Sharding:is_in_use() return self.sharded ~= nil or self.parted ~= nil end

--- Whether ranks have different values of a part, as of Strategy.is_replicated.
function Sharding:divides(part)
  if not self.sharded or part == "buffer" then return false end
  if part == "parameter" then return self.stage == 3 end
  return part ~= "gradient" or not self.has_whole_gradients
end

-- The module.

--- With stage 3 a parameter of the meta device is whole on a rank only while it gets its values.
--- share(parameter) makes them the same on all ranks that have it.
function Sharding:materialize(module, device, share)
  if self.stage < 3 or self.sharded or module.device ~= "meta" and not module.configure_model then
    return
  end
  local shards = self.parted or new_shards(self)
  self.parted = part_meta(module, device, self.options.keep_below, shards, share) or self.parted
end

--- Whether tensors of a file are read a shard at a time, before the module is divided.
function Sharding:reads_shards(module)
  return self.stage == 3 and not self.sharded and module:_takes_unread()
end

--- Loads weights into the shards of what was on the meta device. Returns whether there are any.
function Sharding:load_parted(module, state)
  local shards = self.parted
  if not shards then return false end
  module_state.load_by(module, state, function(...) shards:copy_into(...) end)
  return true
end

--- Divides the module. `has_whole`: gradients are reduced whole, by the strategy. `division`
--- (optional): of a pipeline. All ranks call it.
function Sharding:divide(module, has_whole, division)
  local o = self.options
  self.has_whole_gradients = has_whole
  local shards = self.parted or new_shards(self)
  shards.division = division
  self.sharded = ShardedModule(module, { shards = shards,
    shards_parameters = self.stage == 3, units = o.units,
    reshard_after_forward = o.reshard_after_forward, keep_below = o.keep_below,
    shards_gradients = o.accumulate == "shards" and not has_whole })
  self.parted = nil
  collectives.before(function(group)
    if not group or self.steps == 0 then self.sharded:settle() end
  end, self.ranks.group)
end

--- Refuses optimizers that compute with whole parameters.
function Sharding:check(optimizers)
  for _, optimizer in ipairs(optimizers) do check_elementwise(optimizer, self.who, "slices") end
end

--- Shards the state that optimizers have, which are checked. All ranks call it.
function Sharding:add(optimizers)
  for _, optimizer in ipairs(optimizers) do
    if not self.optimizers[optimizer] then
      self.optimizers[optimizer] = ShardedOptimizer(optimizer, self.sharded.shards, self.cap,
        self.has_whole_gradients)
      self.order[#self.order + 1] = optimizer
      optimizer_guard.guard(optimizer, self.who, function(_, saved)
        self:load_optimizer(optimizer, saved)
      end)
    end
  end
end

-- Steps.

--- Whether gradients of an optimizer are those of shards alone.
function Sharding:has_gradients_of(optimizer)
  return not self.has_whole_gradients and self.optimizers[optimizer] ~= nil
end

--- The optimizer's groups, with this rank's shards where these alone have gradients.
function Sharding:param_groups(optimizer)
  if not self:has_gradients_of(optimizer) then return optimizer.param_groups end
  return self.optimizers[optimizer]:groups()
end

-- Until the result is closed a step runs. Collectives of groups within it are those of the module's
-- own layers, in which all ranks of a group take part at the same place of their programs.
local function enter_step(self)
  self.steps = self.steps + 1
  return setmetatable({}, { __close = function() self.steps = self.steps - 1 end })
end

--- See ShardedModule.forward_scope.
function Sharding:forward_scope(outer)
  if not self.sharded then return outer end
  local scope, step = self.sharded:forward_scope(outer), enter_step(self)
  return setmetatable({}, { __close = function()
    local _ <close> = scope
    local _ <close> = step
  end })
end

--- Runs pass(), a backward: gradients are reduced to their shards meanwhile. `what`: see
--- ShardedModule.backward.
function Sharding:backward(pass, what)
  if not self.sharded then return pass() end
  local _ <close> = enter_step(self)
  self.sharded:backward(pass, what)
end

--- What DDP calls in the place of an object of lt.dist.ddp (see DDP.configure_ddp): gradients are
--- reduced to their shards.
function Sharding:as_ddp(module)
  local made = {}
  function made.backward(_, loss, weight, ...)
    if weight ~= 1.0 then loss = loss * weight end
    local more = table.pack(...)
    self:backward(function() module:backward(loss, table.unpack(more, 1, more.n)) end)
  end
  function made.sync(_, parameters, total) self:reduce_gradients(parameters, total) end
  return made
end

--- Runs finish(), the backward of collectives that none has visited: their graph has units too.
function Sharding:end_collectives(finish)
  if not self.sharded or c.dist.unvisited() == 0 then return finish() end
  self:backward(finish)
end

--- Makes the weighted mean of all ranks' gradients, of which the shards have theirs.
function Sharding:reduce_gradients(parameters, total)
  self.sharded:reduce_gradients(parameters, total, self.cap)
end

--- The norm over all shards, those of replica 0. counts(parameter) (nil: true): whether this rank
--- counts its shard, of those that have the same. Partial norms are f64, so that rounding to the
--- gradients' dtype comes last, as on one rank. `device`: that of the rank. All ranks of the world
--- call it.
function Sharding:grad_norm(optimizer, p, device, counts)
  local own = self.optimizers[optimizer]
  local gradients = gradients_of(own:groups(function(parameter, shard)
    return shard.replicas.is_first and (not counts or counts(parameter))
  end))
  table.insert(gradients, c.zeros({ 1 }, { dtype = "f64", device = self.home.device or device }))
  local norm = c.grads_norm({ collectives.all_gather(c.grads_norm(gradients, p)) }, p)
  return own:steps "f64" and norm or norm:to "f32"
end

--- Steps this rank's slices, and gathers the new parameters where they are whole.
function Sharding:step(optimizer, update)
  local own = self.optimizers[optimizer]
  if not own then return update() end
  if self.home.device then optimizer:place_checks(self.home.device) end
  own:step(update)
  self.sharded:renew()
end

--- Gathers all units until the result is closed; nil: all is whole.
function Sharding:gather() return self.sharded and self.sharded:gather(true) or nil end

--- See Strategy.accumulated_gradient: this rank's slice of what was reduced, at its place.
function Sharding:accumulated_gradient(parameter)
  if not self.sharded then return parameter.grad end
  return self.sharded:accumulated_gradient(parameter)
end

--- Whether this rank has something of it.
function Sharding:has_accumulated_gradient(parameter)
  return parameter.grad ~= nil
    or self.sharded ~= nil and self.sharded:has_accumulated_gradient(parameter)
end

-- State.

--- The module's state_dict, or what is in `state` of it, with this rank's parts of what is divided.
--- All ranks call it.
function Sharding:module_parts(module, state)
  state = state or module:state_dict()
  local of = self.sharded.shards.of
  for _, item in ipairs((walk.tensors(module))) do
    local value, shard, cut = state[item.name], of[item.value], cuts.of(item.value)
    if value and shard and not shard.is_kept then
      state[item.name] = slices.part_of(shard, shard.tensor:to(value.dtype))
    elseif value and cut then
      state[item.name] = part_state.part_of(cut, value)
    end
  end
  return state
end

--- An optimizer's state_dict in parts. All ranks call it.
function Sharding:optimizer_parts(optimizer, own_tensors)
  local own, state_dict = self.optimizers[optimizer], class.of(optimizer).state_dict
  if not own then return state_dict(optimizer, own_tensors) end
  return slices.of_whole(optimizer, own:parts(state_dict, own_tensors), self.sharded.shards)
end

--- Copies a tensor into this rank's part of a parameter or buffer: see Shards.copy_into.
function Sharding:copy_into(own, source) self.sharded.shards:copy_into(own, source) end

--- Loads this rank's parts of a complete state.
function Sharding:load_optimizer(optimizer, state)
  local own, load = self.optimizers[optimizer], class.of(optimizer).load_state_dict
  if not own then return load(optimizer, parts.whole(state)) end
  own:load(load, part_state.own_state(optimizer, state))
end

--- The f32 shards of parameters in 16 bits, as parts; nil: there are none. All ranks call it.
function Sharding:state_dict()
  local wide = self.sharded and self.sharded:wide_shards() or {}
  if #wide == 0 then return nil end
  local saved = {}
  for _, shard in ipairs(wide) do saved[shard.name] = slices.part_of(shard, shard.tensor) end
  return { shards = saved }
end

--- Takes them from a checkpoint.
function Sharding:load_state_dict(state)
  local _ <close> = c.no_grad()
  for _, shard in ipairs(self.sharded and state.shards and self.sharded:wide_shards() or {}) do
    local value, cut = state.shards[shard.name], cuts.of(shard.parameter)
    if value and shard.n > 0 then
      if cut then value = cuts.read(cut, value) end
      shard.tensor:copy_(parts.read(value, shard.from, shard.n):reshape { 1, shard.n })
    end
  end
end

-- The end.

--- Optimizers have their own state_dict again, and what is in their state stays there; `is_lost`:
--- the run has failed, and the parts of other ranks are gone.
function Sharding:leave_optimizers(is_lost)
  for _, optimizer in ipairs(self.order) do
    optimizer_guard.unguard(optimizer)
    if is_lost and next(optimizer.state) ~= nil then optimizer_guard.lose(optimizer, self.who) end
  end
  self.optimizers, self.order = {}, {}
end

--- Nothing waits for other ranks any more. `whole`: all ranks call it, and make the module whole;
--- else it is lost.
function Sharding:leave_module(whole)
  self.parted = nil
  if not self.sharded then return end
  if whole then self.sharded:join() else self.sharded:lose() end
  collectives.before(nil)
  self.sharded = nil
end

--- Both, at the end of a run that all ranks end (`whole`), or that failed.
function Sharding:leave(whole)
  self:leave_optimizers(not whole)
  self:leave_module(whole)
end

return Sharding
