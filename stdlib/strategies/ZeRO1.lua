--- stdlib/strategies/ZeRO1.lua: as DDP, with the state of optimizers sharded over the ranks (ZeRO
--- stage 1).
--
-- Each rank has the whole module, and 1 / N of the optimizers' state (momentum, running means) on N
-- ranks. Before a step the gradients are reduced and scattered: each rank gets the sums of its
-- slices, steps these slices, and the new parameters are gathered on all ranks. This moves as many
-- bytes as DDP, and gives the same bits, if the optimizer updates each element independently
-- (`elementwise` of its class; true for those of lt.optim).
--
-- Between the reduction and the step, and so in on_before_optimizer_step, parameters have no
-- gradients: `trainer.strategy:grad_norm(optimizer, 2)` returns their norm, self:clip_gradients
-- clips them. Checkpoints are complete, as DDP's are, and resume on any number of ranks, with DDP
-- too. Gathering them takes all ranks: every rank must call trainer:save_checkpoint, and after an
-- error no checkpoint is saved (`save_on_exception`).
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

--- Its options.
ZeRO1.options = ParallelStrategy.rows()

--- ZeRO1{bucket_cap_mb = 25, ...}
function ZeRO1:init(options)
  ParallelStrategy.init(self, options)
  self.shards, self.order = {}, {} -- by optimizer, and the optimizers in order
end

function ZeRO1:setup(trainer)
  if trainer.state.fn == "fit" then self.shards, self.order = {}, {} end -- a fit may have failed
  self.is_world = trainer.options.deterministic == "world"
  ParallelStrategy.setup(self, trainer)
end

--- Refuses a module with configure_ddp.
function ZeRO1:setup_module(module)
  if module.configure_ddp then
    errors.blame("strategies.ZeRO1: configure_ddp of the module is not used: write strategy = "
      .. "'ddp', or remove it")
  end
  return module
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
    errors.blame("%s: state_dict: under strategies.ZeRO1 each rank holds a part of it: "
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

--- Reduces and scatters the gradients: each rank gets the sums of its slices.
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

--- The norm over all slices, accumulated in f64; with deterministic = "world" that of the gathered
--- gradients, which has the same bits as on one rank.
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

-- Gradients of a backward pass after sync_gradients would be lost.
local function check_no_more(optimizer)
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if parameter.grad then
      errors.blame("optimizer:step: gradients were accumulated after sync_gradients or "
        .. "clip_gradients: with strategies.ZeRO1 run all backward passes of a step before them")
    end
  end
end

--- Steps the slices, and gathers the new parameters on all ranks.
function ZeRO1:optimizer_step(optimizer, update)
  local shards = self.shards[optimizer]
  if not shards then return update() end
  check_no_more(optimizer)
  shards:step(update)
end

--- The complete state on rank 0, gathered from all ranks.
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

--- Each rank loads its shard.
function ZeRO1:load_optimizer_state(optimizer, state)
  local shards = self.shards[optimizer]
  class.of(optimizer).load_state_dict(optimizer, state)
  if not shards then return end
  shards:follow() -- groups that were added are in the state
  shards:scatter_state(optimizer.state)
end

--- Gathers the complete state on rank 0, for checkpoints saved after the fit, and frees it on the
--- other ranks; also for optimizers that the script has removed from the Trainer.
function ZeRO1:end_training(_)
  for _, optimizer in ipairs(self.order) do
    optimizer.state = self.shards[optimizer]:gather_state() or {}
    unguard(optimizer)
  end
  self.shards, self.order = {}, {}
end

--- The state of optimizers is sharded, and so are gradients between reduction and step.
function ZeRO1:is_replicated(part)
  return part ~= "optimizer" and part ~= "gradient" or next(self.shards) == nil
end

return ZeRO1
