--- stdlib/strategies/ZeRO1.lua: DDP with optimizer state sharded over the ranks (ZeRO stage 1).
--
-- Each rank has the whole module, and 1 / N of the optimizers' state (momentum, running means) on N
-- ranks. Gradients are reduced as in DDP; then each rank updates its slices of the parameters, and
-- the new parameters are gathered on all ranks, which is half as much communication again as DDP.
-- The result is bitwise equal to DDP's, including norms of gradients, if the optimizer updates each
-- element independently (`elementwise` of its class; true for those of lt.optim).
--
-- Checkpoints are complete, like DDP's, and resume on any number of ranks, also with DDP. Gathering
-- them takes all ranks: every rank must call trainer:save_checkpoint, and after an error no
-- checkpoint is saved (`save_on_exception`). When a fit fails, the other ranks' parts of the state
-- are lost: the optimizers can be used again only after loading a checkpoint.
local Optimizer = require "ltrain.optim.Optimizer"
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local Reducer = require "ltrain.dist.Reducer"
local Shards = require "ltrain.dist.Shards"
local buckets = require "ltrain.dist.buckets"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"
local parts = require "ltrain.core.parts"

local ZeRO1 = ParallelStrategy:extend("ZeRO1")

--- Its options.
ZeRO1.options = ParallelStrategy.rows()

--- ZeRO1{bucket_cap_mb = 25, ...}
function ZeRO1:init(options)
  ParallelStrategy.init(self, options)
  self.shards, self.order = {}, {} -- by optimizer, and the optimizers in order
end

function ZeRO1:setup(trainer)
  if trainer.state.fn == "fit" then
    self.fit, self.reducer = trainer, Reducer { bucket_cap_mb = self.bucket_cap_mb }
  end
  ParallelStrategy.setup(self, trainer)
end

-- Whether the class that defines `update` is declared elementwise, so that slices can be stepped; a
-- subclass without its own `update` inherits that.
local function is_elementwise(optimizer)
  local found = optimizer -- which may have an update of its own
  while found do
    local said = rawget(found, "elementwise")
    if said ~= nil or rawget(found, "update") then return said == true end
    found = found == optimizer and class.of(optimizer) or rawget(found, "super")
  end
end

local function check(optimizer)
  local name = errors.show(optimizer)
  if not class.is_a(optimizer, Optimizer) or optimizer.step ~= Optimizer.step then
    errors.blame("strategies.ZeRO1: %s overrides step, which updates whole parameters: "
      .. "extend lt.optim.Optimizer and define update, or write strategy = 'ddp'", name)
  elseif not is_elementwise(optimizer) then
    errors.blame("strategies.ZeRO1: %s: a rank steps slices of the parameters: set "
      .. "%s.elementwise = true if update treats each element independently, else write strategy "
      .. "= 'ddp'", name, rawget(optimizer, "update") and "optimizer" or class.of(optimizer).__name)
  end
  for i, parameter in ipairs(parameters_of(optimizer)) do
    if not parameter:is_contiguous() then
      errors.blame("strategies.ZeRO1: parameter %d of %s is not contiguous: %s: create it from "
        .. "x:contiguous()", i, name, errors.show(parameter))
    end
  end
end

-- The optimizer's own state is a shard: makes its state_dict an error, and load_state_dict shard.
local function guard(self, optimizer)
  local name = "optim." .. class.of(optimizer).__name
  rawset(optimizer, "state_dict", function()
    errors.blame("%s: state_dict: under strategies.ZeRO1 each rank has a part of it: "
      .. "trainer.strategy:optimizer_state(optimizer), called on all ranks, returns it on rank 0",
      name)
  end)
  rawset(optimizer, "load_state_dict", function(_, saved)
    self:load_optimizer_state(optimizer, saved)
  end)
end

local function unguard(optimizer)
  rawset(optimizer, "state_dict", nil)
  rawset(optimizer, "load_state_dict", nil)
end

--- Shards their parameters and the state that they have.
function ZeRO1:setup_optimizers(optimizers)
  if self.world_size == 1 then return optimizers end
  for _, optimizer in ipairs(optimizers) do
    if not self.shards[optimizer] then
      check(optimizer)
      local shards = Shards(optimizer, buckets.bytes(self.bucket_cap_mb))
      shards:share_state()
      self.shards[optimizer] = shards
      self.order[#self.order + 1] = optimizer
      guard(self, optimizer)
    end
  end
  return optimizers
end

--- Replaces the gradients by their weighted mean over all ranks, reduced in buckets.
function ZeRO1:reduce_gradients(optimizer, total, missing, weight)
  if self.world_size == 1 then
    return ParallelStrategy.reduce_gradients(self, optimizer, total, missing, weight)
  end
  self.reducer:reduce(parameters_of(optimizer), total, missing, optimizer)
end

--- Steps this rank's slices, and gathers the new parameters on all ranks.
function ZeRO1:optimizer_step(optimizer, update)
  local shards = self.shards[optimizer]
  if not shards then return update() end
  shards:step(update)
end

--- This rank's part of the state.
function ZeRO1:optimizer_parts(optimizer)
  local shards, state_dict = self.shards[optimizer], class.of(optimizer).state_dict
  return shards and shards:parts(state_dict) or state_dict(optimizer)
end

--- Each rank loads its part.
function ZeRO1:load_optimizer_state(optimizer, state)
  local shards, load = self.shards[optimizer], class.of(optimizer).load_state_dict
  if shards then return shards:load(load, state) end
  load(optimizer, parts.whole(state))
end

--- Gathers the complete state on rank 0, for checkpoints saved after the fit, and frees it on the
--- other ranks; also for optimizers that the script has removed from the Trainer.
function ZeRO1:end_training(_)
  for _, optimizer in ipairs(self.order) do
    local whole = self:optimizer_state(optimizer)
    optimizer.state = {}
    unguard(optimizer)
    if whole then optimizer:load_state_dict(whole) end
  end
  self.shards, self.order = {}, {}
end

-- Stands for a state whose parts on other ranks are lost: an error, until another is loaded.
local function lose(optimizer)
  local function refuse()
    errors.blame("optim.%s: its state is incomplete: a fit under strategies.ZeRO1 failed, and the "
      .. "other ranks ended with their parts of it: resume from a checkpoint with ckpt_path, or "
      .. "create a new optimizer", class.of(optimizer).__name)
  end
  optimizer.state = setmetatable({}, { __index = refuse, __newindex = refuse, __pairs = refuse })
end

--- After a fit that failed the other ranks' parts of the state are gone.
function ZeRO1:teardown()
  if self.fit and self.fit.state.status ~= "running" then -- else another Trainer's, within the fit
    for _, optimizer in ipairs(self.order) do
      unguard(optimizer)
      if next(optimizer.state) ~= nil then lose(optimizer) end
    end
    self.fit, self.shards, self.order = nil, {}, {}
  end
  ParallelStrategy.teardown(self)
end

--- The state of optimizers is sharded.
function ZeRO1:is_replicated(part)
  return part ~= "optimizer" or next(self.shards) == nil
end

return ZeRO1
