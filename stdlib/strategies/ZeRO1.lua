--- stdlib/strategies/ZeRO1.lua: as DDP, with the state of optimizers in parts, one a rank (ZeRO
--- stage 1).
--
-- Each rank holds the whole module, and of what optimizers keep (momentum, running means) its
-- share: 1 / N of the bytes on N ranks. Before a step each rank gets the sums of its slices of the
-- gradients, steps these slices, and all get the new parameters from all: as many bytes as DDP
-- moves, and the same bits, where optimizers treat each element alone (`elementwise` of their
-- class; those of lt.optim do).
--
-- Between the reduction and the step, and so in on_before_optimizer_step, parameters have no
-- gradients: `trainer.strategy:grad_norm(optimizer, 2)` gives their norm, self:clip_gradients clips
-- them. Checkpoints are whole, as DDP's are, and resume on any number of ranks, under DDP too. To
-- gather them takes all ranks: every rank calls trainer:save_checkpoint, and after an error nothing
-- is saved (`save_on_exception`).
local Optimizer = require "ltrain.optim.Optimizer"
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local Shards = require "ltrain.dist.Shards"
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"

local ZeRO1 = ParallelStrategy:extend("ZeRO1")

--- What it is called with.
ZeRO1.options = ParallelStrategy.rows()

--- ZeRO1{bucket_cap_mb = 25, ...}
function ZeRO1:init(options)
  ParallelStrategy.init(self, options)
  self.shards, self.order = {}, {} -- by optimizer, and these in the order of their coming
end

function ZeRO1:setup(trainer)
  if trainer.state.fn == "fit" then self.shards, self.order = {}, {} end -- one may have failed
  self.is_world = trainer.options.deterministic == "world"
  ParallelStrategy.setup(self, trainer)
end

--- Gradients are shared in one way only.
function ZeRO1:setup_module(module)
  if module.configure_ddp then
    errors.blame("strategies.ZeRO1: configure_ddp of the module gives all ranks all gradients: "
      .. "write strategy = 'ddp', or leave it out")
  end
  return module
end

-- Whether the class that has `update` says that slices step as the whole does; what is below it
-- without an `update` of its own is as it.
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
    errors.blame("strategies.ZeRO1: %s has a step of its own, which steps whole parameters: "
      .. "extend lt.optim.Optimizer and define update, or write strategy = 'ddp'", name)
  elseif not is_elementwise(optimizer) then
    errors.blame("strategies.ZeRO1: %s: a rank steps slices of the parameters: say "
      .. "%s.elementwise = true where update treats each element alone, else write strategy = "
      .. "'ddp'", name, rawget(optimizer, "update") and "optimizer" or class.of(optimizer).__name)
  end
  for i, parameter in ipairs(parameters_of(optimizer)) do
    if not parameter:is_contiguous() then
      errors.blame("strategies.ZeRO1: parameter %d of %s is not contiguous: %s: make it of "
        .. "x:contiguous()", i, name, errors.show(parameter))
    end
  end
end

-- What the optimizer itself has is a part: nobody takes that for the whole.
local function guard(self, optimizer)
  local name = "optim." .. class.of(optimizer).__name
  rawset(optimizer, "state_dict", function()
    errors.blame("%s: state_dict: under strategies.ZeRO1 each rank holds a part of it: "
      .. "trainer.strategy:optimizer_state(optimizer), called by all ranks, gives rank 0 the whole",
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

--- Cuts their parameters, and the state that they have already.
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

--- Each rank gets the sums of its slices.
function ZeRO1:reduce_gradients(optimizer, total, missing, weight)
  local shards = self.shards[optimizer]
  if not shards then
    return ParallelStrategy.reduce_gradients(self, optimizer, total, missing, weight)
  end
  shards:reduce(total, missing)
end

--- This rank's slices.
function ZeRO1:param_groups(optimizer)
  local shards = self.shards[optimizer]
  return shards and shards.groups or optimizer.param_groups
end

--- The norm of all slices, in f64 until it is whole; with deterministic = "world" that of gathered
--- gradients, to the last bit what one rank has.
function ZeRO1:grad_norm(optimizer, p)
  local shards = self.shards[optimizer]
  if not shards then return ParallelStrategy.grad_norm(self, optimizer, p) end
  if self.is_world and p ~= math.huge then return c.grads_norm(shards:gather_gradients(), p) end
  local zero = c.zeros({ 1 }, { dtype = "f64", device = self.root_device })
  local list, is_double = { zero }, false
  for _, group in ipairs(shards.groups) do
    for _, shard in ipairs(group.params) do
      list[#list + 1] = shard.grad
      is_double = is_double or shard.dtype == "f64"
    end
  end
  local norm = c.grads_norm({ dist.all_gather(c.grads_norm(list, p)) }, p)
  return is_double and norm or norm:to "f32"
end

-- Gradients of a backward after sync_gradients would be lost.
local function check_no_more(optimizer)
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if parameter.grad then
      errors.blame("optimizer:step: there are gradients that were added after sync_gradients or "
        .. "clip_gradients: under strategies.ZeRO1 run all backward passes of a step before")
    end
  end
end

--- Steps the slices; then all ranks have the new parameters.
function ZeRO1:optimizer_step(optimizer, update)
  local shards = self.shards[optimizer]
  if not shards then return update() end
  check_no_more(optimizer)
  shards:step(update)
end

--- The whole on rank 0, gathered from all.
function ZeRO1:optimizer_state(optimizer)
  local shards = self.shards[optimizer]
  if not shards then return ParallelStrategy.optimizer_state(self, optimizer) end
  local whole, own = shards:gather_state(), optimizer.state
  if not whole then return nil end
  optimizer.state = whole
  local ok, saved = pcall(class.of(optimizer).state_dict, optimizer)
  optimizer.state = own
  if not ok then error(saved, 0) end
  return saved
end

--- Each rank takes its part.
function ZeRO1:load_optimizer_state(optimizer, state)
  local shards = self.shards[optimizer]
  class.of(optimizer).load_state_dict(optimizer, state)
  if not shards then return end
  shards:follow() -- groups that were added are in the state
  shards:scatter_state(optimizer.state)
end

--- Rank 0 has the whole state again, for files that are saved after the fit; the others none. Also
--- of optimizers that a script has taken out of the Trainer since.
function ZeRO1:end_training(_)
  for _, optimizer in ipairs(self.order) do
    optimizer.state = self.shards[optimizer]:gather_state() or {}
    unguard(optimizer)
  end
  self.shards, self.order = {}, {}
end

--- The state of optimizers, and gradients between reduction and step, are in parts.
function ZeRO1:is_replicated(part)
  return part ~= "optimizer" and part ~= "gradient" or next(self.shards) == nil
end

return ZeRO1
