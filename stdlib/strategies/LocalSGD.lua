--- stdlib/strategies/LocalSGD.lua: local SGD (Lin et al. 2020): every rank steps with its own
--- gradients, and the weights are averaged over the ranks every few steps.
--
-- Steps of an optimizer are counted from 0. During the first `warmup_steps` gradients are reduced
-- as in DDP; afterwards each rank steps with the gradients of its own samples, and after each step
-- whose number is `warmup_steps` plus a multiple of `period` the weights are averaged over the
-- ranks (post-local SGD; PyTorch's PostLocalSGDOptimizer with PeriodicModelAverager). From the
-- first local step on, each rank has its own optimizer state, and clips by the norm of its own
-- gradients.
--
-- With `overlap` an averaging does not stop training: it is of the weights when it begins, and so
-- many steps later the difference that it has made to them is added to what they are by then
-- (asynchronous averaging).
--
-- Validation, checkpoints and the end of a fit use the mean of all ranks' weights, also within a
-- period; validation and checkpoints do not change the training. A checkpoint also contains each
-- rank's own weights, optimizer state and, within accumulate_grad_batches, gradients: on the same
-- number of ranks the fit resumes exactly; on another number, or with another strategy, it resumes
-- from the mean, rank 0's optimizer state and equal parts of the gradients.
-- Gathering it takes all ranks: every rank must call trainer:save_checkpoint, and after an error no
-- checkpoint is saved (`save_on_exception`).
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local Reducer = require "ltrain.dist.Reducer"
local Rounds = require "ltrain.strategies.local_sgd.Rounds"
local Strategy = require "ltrain.strategies.Strategy"
local averaging = require "ltrain.strategies.local_sgd.averaging"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local gather_parts = require "ltrain.dist.gather_parts"
local parameters_of = require "ltrain.core.parameters_of"
local parts = require "ltrain.core.parts"

local LocalSGD = ParallelStrategy:extend("LocalSGD")

local ROWS <const> = {
  warmup_steps = { type = "integer", default = 0, min = 0,
    doc = "number of first steps whose gradients are reduced over the ranks" },
  overlap = { type = "integer|boolean", default = 0, min = 0,
    convert = function(value) return type(value) == "number" and value or value and 1 or 0 end,
    doc = "number of steps that run while the ranks average, after which the result is applied; 0 "
      .. "or false: training waits for it" },
}

--- Rows of options for a subclass: its own and those of LocalSGD but `period`.
function LocalSGD.rows(own)
  local rows = {}
  for name, row in next, ROWS do rows[name] = row end
  for name, row in next, own or {} do rows[name] = row end
  return ParallelStrategy.rows(rows)
end

--- Its options.
LocalSGD.options = LocalSGD.rows {
  period = { type = "integer", default = 4, min = 1,
    doc = "number of steps between averagings of the weights" },
}

-- Resets the state of a fit.
local function begin(self)
  self.steps = {} -- number of steps by optimizer
  self.rounds = {} -- Rounds by optimizer
  -- By optimizer: whether the gradients of the next step are finite on all ranks; nil: not known.
  self.is_finite = {}
  -- By optimizer whose weights differ between ranks now: the set of the parameters that this rank
  -- has changed.
  self.apart = {}
  self.ended = nil -- after training: each rank's state, complete on rank 0
  self.own = nil -- during evaluation: this rank's weights by parameter
  self.reducer = Reducer { bucket_cap_mb = self.bucket_cap_mb }
end

--- LocalSGD{period = 4, warmup_steps = 0, ...}
function LocalSGD:init(options)
  local o = ParallelStrategy.init(self, options)
  self:take_rounds(o.period, o)
end

--- Takes the number of steps between two averagings, and the other options.
function LocalSGD:take_rounds(period, o)
  self.period, self.warmup_steps, self.overlap = period, o.warmup_steps, o.overlap
  if self.overlap >= period then
    errors.blame("strategies.%s: overlap must be below the %d steps between averagings: got %d",
      class.of(self).__name, period, self.overlap)
  end
  begin(self)
end

--- Rejects deterministic = "world": results depend on the number of ranks.
function LocalSGD:setup(trainer)
  local name = class.of(self).__name
  if trainer.options.deterministic == "world" then
    errors.blame("strategies.%s: deterministic = 'world' needs results that do not depend "
      .. "on the number of ranks, and with %s they do: remove one of them", name, name)
  end
  if trainer.state.fn == "fit" then self:begin_fit() end
  ParallelStrategy.setup(self, trainer)
end

--- Called on all ranks at the start of a fit: resets its state.
function LocalSGD:begin_fit()
  begin(self)
  -- Of their own, as the collectives of a group are done in their order.
  self.background = self.overlap > 0 and self.world_size > 1 and dist.split(0) or nil
end

function LocalSGD:setup_optimizers(optimizers)
  for _, optimizer in ipairs(optimizers) do
    self.steps[optimizer] = self.steps[optimizer] or 0
  end
  return optimizers
end

-- Whether the next step uses gradients reduced over all ranks.
local function is_shared(self, optimizer) return self.steps[optimizer] < self.warmup_steps end

--- During warmup_steps.
function LocalSGD:shares_gradients()
  for optimizer in next, self.steps do
    if not is_shared(self, optimizer) then return false end
  end
  return true
end

local function take_mean(self, optimizer, weight)
  if weight > 0 then Strategy.reduce_gradients(self, optimizer, weight, 0, weight) end
end

--- Of a local step, whose gradients are then the mean over this rank's samples: whether these are
--- not finite, and whether that may change.
function LocalSGD:step_numbers(optimizer, weight, is_open)
  if self.world_size == 1 or is_shared(self, optimizer) then return nil end
  take_mean(self, optimizer, weight)
  if is_open then return { 0, 1 } end
  local norm = Strategy.grad_norm(self, optimizer, math.huge):item()
  return { norm < math.huge and 0 or 1, 0 }
end

--- Whether all are, where they stay as they are.
function LocalSGD:take_step_numbers(optimizer, sums)
  self.is_finite[optimizer] = nil
  if sums[2] == 0 then self.is_finite[optimizer] = sums[1] == 0 end
end

--- The mean over this rank's samples; during warmup_steps over those of all ranks.
function LocalSGD:reduce_gradients(optimizer, total, missing, weight)
  if self.world_size == 1 then return take_mean(self, optimizer, weight) end
  if not is_shared(self, optimizer) then return end -- see step_numbers
  self.reducer:reduce(parameters_of(optimizer), total, missing, optimizer)
end

--- The norm of this rank's gradients; if it is not finite on one rank, it is on none.
function LocalSGD:grad_norm(optimizer, p)
  local own, known = Strategy.grad_norm(self, optimizer, p), self.is_finite[optimizer]
  if self.world_size == 1 or is_shared(self, optimizer) or known then return own end
  if known == false then return own + math.huge end
  local largest = c.grads_norm({ dist.all_gather(own:to "f64") }, math.huge)
  return c.where(largest:isfinite(), own, largest:to(own.dtype))
end

-- Records the parameters that a step of this rank alone changes.
local function note_changed(self, optimizer)
  local set = self.apart[optimizer] or {}
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if parameter.grad then set[parameter] = true end
  end
  self.apart[optimizer] = set
end

-- Rounds. An optimizer's parameters are averaged in fragments.

--- Returns the parameters of each fragment: lists.
function LocalSGD:fragments_of(parameters) return { parameters } end

--- Whether fragment `i` is averaged after a local step, counted from 0.
function LocalSGD:ends_round(step, i) return step % self.period == 0 end -- luacheck: ignore

--- Called on all ranks after an averaging: returns the weights that follow from the means of the
--- ranks' weights, which are the same on all ranks.
function LocalSGD:next_weights(parameters, means) return means end -- luacheck: ignore

--- Called before each local step of an optimizer.
function LocalSGD:begin_local_step(optimizer) end -- luacheck: ignore

local function rounds_of(self, optimizer)
  self.rounds[optimizer] = self.rounds[optimizer] or Rounds(self, optimizer)
  return self.rounds[optimizer]
end

--- Steps, then averages the weights at the end of a period.
function LocalSGD:optimizer_step(optimizer, update)
  local step = self.steps[optimizer]
  local is_apart = self.world_size > 1 and step >= self.warmup_steps
  if is_apart then
    self:begin_local_step(optimizer)
    note_changed(self, optimizer)
  end
  update()
  self.steps[optimizer], self.is_finite[optimizer] = step + 1, nil
  if is_apart then rounds_of(self, optimizer):end_step(step - self.warmup_steps) end
end

-- Parameters that differ between ranks, in the order of the module, with their names. Called on
-- all ranks.
local function apart(self)
  local set, all, name_of, names = {}, {}, {}, {}
  if next(self.apart) == nil then return {}, names end
  for _, changed in next, self.apart do
    for parameter in next, changed do set[parameter] = true end
  end
  for name, parameter in self.module:named_parameters() do
    all[#all + 1], name_of[parameter] = parameter, name
  end
  local list = averaging.in_some(all, set)
  for i, parameter in ipairs(list) do names[i] = name_of[parameter] end
  return list, names
end

--- Evaluation uses the mean of all ranks' weights.
function LocalSGD:evaluation_scope(module)
  local list = apart(self)
  if #list == 0 or self.own then return nil end
  local own = averaging.copies_of(list)
  averaging.average(self.reducer, list)
  self.own = {}
  for i, parameter in ipairs(list) do self.own[parameter] = own[i] end
  return setmetatable({}, { __close = function()
    averaging.write(list, own)
    self.own = nil
  end })
end

--- The mean of all ranks' weights.
function LocalSGD:module_parts(module)
  local list, names = apart(self)
  local state = module:state_dict()
  if self.own or #list == 0 then return state end
  local means = averaging.copies_of(list)
  averaging.average(self.reducer, means)
  for i, name in ipairs(names) do state[name] = means[i] end
  return state
end

-- This rank's own weights by name: those that differ between ranks.
local function own_weights(self)
  local list, names = apart(self)
  local weights = {}
  for i, parameter in ipairs(list) do
    weights[names[i]] = self.own and self.own[parameter] or parameter
  end
  return weights
end

-- Whether ranks have made steps by their own gradients.
local function is_local(self)
  if self.ended ~= nil then return false end
  for _, steps in next, self.steps do
    if steps > self.warmup_steps then return true end
  end
  return false
end

--- Rank 0's; what the others have is in state_dict.
function LocalSGD:optimizer_parts(optimizer, own_tensors)
  local saved = optimizer:state_dict(own_tensors)
  if is_local(self) and not self.is_global_zero then saved.state = {} end
  return saved
end

--- Returns a list of tensors of these parameters as a table by their names; nil of nil.
function LocalSGD:by_name(parameters, values)
  if not values then return nil end
  local name_of, named = {}, {}
  for name, parameter in self.module:named_parameters() do name_of[parameter] = name end
  for i, parameter in ipairs(parameters) do
    if name_of[parameter] then named[name_of[parameter]] = values[i] end
  end
  return named
end

--- What a subclass has of an optimizer beside the averages on their way, the same on all ranks: a
--- tree, whose tensors it does not change afterwards.
function LocalSGD:outer_state(optimizer) end -- luacheck: ignore

--- Restores it.
function LocalSGD:load_outer_state(optimizer, state) end -- luacheck: ignore

--- Each rank's own weights, and states of its optimizers; rank 0's are the optimizers' states.
function LocalSGD:state_dict(optimizers)
  if self.ended ~= nil then return self.ended or nil end
  local saved = { world_size = self.world_size, steps = {}, ranks = {}, rounds = {} }
  for i, optimizer in ipairs(optimizers) do saved.steps[i] = self.steps[optimizer] end
  if self.world_size == 1 or not is_local(self) then return saved end
  local own = { parameters = own_weights(self), optimizers = {}, averages = {} }
  for i, optimizer in ipairs(optimizers) do
    local is_first = self.is_global_zero
    own.optimizers[i] = not is_first and optimizer:state_dict().state or nil
    local shared
    shared, own.averages[i] = rounds_of(self, optimizer):state()
    saved.rounds[i] = is_first and { averages = shared, outer = self:outer_state(optimizer) } or {}
  end
  saved.ranks[tostring(self.global_rank)] = parts.of_tree(own)
  return saved
end

local function restore_weights(self, optimizer, weights)
  local list, values, changed = {}, {}, {}
  local is_of = {}
  for _, parameter in ipairs(parameters_of(optimizer)) do is_of[parameter] = true end
  for name, parameter in self.module:named_parameters() do
    if weights[name] and is_of[parameter] then
      changed[parameter] = true
      list[#list + 1], values[#values + 1] = parameter, weights[name]
    end
  end
  self.apart[optimizer] = changed
  averaging.write(list, values)
end

local function restore(self, optimizer, state, weights)
  if state then
    local groups = optimizer:state_dict().param_groups
    optimizer:load_state_dict { param_groups = groups, state = state }
  end
  if weights and next(weights) ~= nil then restore_weights(self, optimizer, weights) end
end

--- Restores this rank's own state and weights, if the number of ranks is that of the checkpoint.
function LocalSGD:load_state_dict(saved, optimizers)
  local own = saved.world_size == self.world_size and saved.ranks[tostring(self.global_rank)]
  own = own and parts.whole(own)
  for i, optimizer in ipairs(optimizers) do
    self.steps[optimizer] = saved.steps[i]
    if own then restore(self, optimizer, own.optimizers[i], own.parameters) end
    local round = saved.rounds and parts.whole(saved.rounds[i])
    if round and round.averages and self.world_size > 1 then
      rounds_of(self, optimizer):load(round.averages, own and own.averages[i])
      self:load_outer_state(optimizer, round.outer)
    end
  end
end

--- Also takes what older files have in the optimizers' states: `local_sgd`.
function LocalSGD:load_optimizer_state(optimizer, state)
  ParallelStrategy.load_optimizer_state(self, optimizer, state)
  local saved = state.local_sgd
  if not saved then return end
  self.steps[optimizer] = saved.steps
  if #saved.ranks ~= self.world_size then return end
  local own = saved.ranks[self.global_rank + 1]
  restore(self, optimizer, own.state, own.parameters)
end

--- Averages the weights of an incomplete period; checkpoints saved later still contain each rank's.
function LocalSGD:end_training(optimizers)
  if self.world_size == 1 then return end
  self.ended = gather_parts(self:state_dict(optimizers)) or false
  for _, optimizer in ipairs(optimizers) do rounds_of(self, optimizer):finish() end
  averaging.average(self.reducer, (apart(self)))
  self.apart = {}
end

--- Weights are the same on all ranks at the start, and after each averaging until the next step.
function LocalSGD:is_replicated(part)
  if self.world_size == 1 or part == "buffer" then return true end
  if part == "parameter" then return next(self.apart) == nil end
  if part == "optimizer" or part == "strategy" then return not is_local(self) end
  return self:shares_gradients()
end

return LocalSGD
