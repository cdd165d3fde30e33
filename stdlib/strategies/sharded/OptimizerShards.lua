--- stdlib/strategies/sharded/OptimizerShards.lua: the state of optimizers divided among the ranks
--- of a group that have the same parameters, or the same parts of them (core/cuts.lua): stage 1 of
--- Sharded, on one dim of a mesh.
local Offload = require "ltrain.strategies.sharded.Offload"
local ShardedOptimizer = require "ltrain.strategies.sharded.ShardedOptimizer"
local Shards = require "ltrain.strategies.sharded.Shards"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local cuts = require "ltrain.core.cuts"
local errors = require "ltrain.core.errors"
local optimizer_guard = require "ltrain.strategies.sharded.optimizer_guard"
local part_state = require "ltrain.parallel.part_state"
local parts = require "ltrain.core.parts"

local OptimizerShards = class.extend(nil, "OptimizerShards")

--- OptimizerShards(module, group, cap, who): messages of at most `cap` bytes; `who`: the strategy.
function OptimizerShards:init(module, group, cap, who)
  self.group, self.cap, self.who = group, cap, who
  self.shards = Shards({ ranks = group:world_size(), rank = group:rank(), is_first = true,
    inner = group._handle, group = group }, Offload())
  self.shards.module = module
  self.of, self.list = {}, {} -- by optimizer, and the optimizers in order
end

-- What the state of a slice of a part could not be put together from.
local function check(self, optimizer)
  for _, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      local cut = cuts.of(parameter)
      if parameter.dtype == "f16" or parameter.dtype == "bf16" then
        errors.blame("%s: stage = 1: %s is %s: take precision = '%s-mixed', or stage = 0", self.who,
          group.names[i], parameter.dtype, parameter.dtype == "f16" and "16" or "bf16")
      elseif cut and parameter:numel() < self.group:world_size() then
        errors.blame("%s: stage = 1: the part of %s, %s, has fewer elements than there are ranks "
          .. "to divide its state: take stage = 0", self.who, group.names[i],
          errors.show_shape(parameter))
      end
    end
  end
end

--- Divides the state that an optimizer has. All ranks call it.
function OptimizerShards:add(optimizer)
  if self.of[optimizer] then return end
  check(self, optimizer)
  self.of[optimizer] = ShardedOptimizer(optimizer, self.shards, self.cap, true)
  self.list[#self.list + 1] = optimizer
  optimizer_guard.guard(optimizer, self.who, function(_, saved) self:load(optimizer, saved) end)
end

--- update() steps this rank's slices; then all ranks of the group have the new parameters.
function OptimizerShards:step(optimizer, update) self.of[optimizer]:step(update) end

-- A slice of the part of a cut parameter as a part of the whole.
local function of_whole(self, cut, slice)
  local first = cuts.range(cut)
  if first then
    return parts.new { shape = cut.shape, from = first + slice.from, tensor = slice.tensor }
  end
  local part = c.zeros({ parts.numel(slice.shape) }, { dtype = slice.dtype,
    device = slice.tensor.device })
  part:narrow(1, slice.from + 1, slice.n):copy_(slice.tensor)
  collectives.all_reduce_(part, { group = self.group }) -- the others have zeros there
  return part_state.part_of(cut, part:reshape(slice.shape))
end

--- What an optimizer's state_dict returns, in parts. All ranks call it.
function OptimizerShards:parts(optimizer)
  local _ <close> = c.no_grad()
  local saved = self.of[optimizer]:parts(class.of(optimizer).state_dict)
  part_state.each_slot(optimizer, saved, function(cut, slots, slot, value)
    if parts.is(value) then slots[slot] = of_whole(self, cut, value) end
  end)
  return saved
end

--- Loads this rank's slices of a complete state.
function OptimizerShards:load(optimizer, state)
  self.of[optimizer]:load(class.of(optimizer).load_state_dict,
    part_state.own_state(optimizer, state))
end

--- The run has ended: optimizers have their own state_dict again; `lost`: after a failure, so that
--- the parts of other ranks are gone.
function OptimizerShards:leave(lost)
  self.shards:forget()
  for _, optimizer in ipairs(self.list) do
    optimizer_guard.unguard(optimizer)
    if lost and next(optimizer.state) ~= nil then optimizer_guard.lose(optimizer, self.who) end
  end
end

return OptimizerShards
