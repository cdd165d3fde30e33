--- stdlib/callbacks/ModelPruning.lua: prunes parameters of the module at the end of epochs.
--
--   local lt = require "ltrain"
--   local net = lt.nn.Linear(4, 2)
--   function net:training_step(x) return self(x):square():mean() end
--   function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
--   local pruning = lt.callbacks.ModelPruning("l1_unstructured", {amount = 0.5,
--     parameter_names = {"weight"}})
--   lt.Trainer{max_epochs = 1, logger = false, enable_checkpointing = false,
--     enable_progress_bar = false, enable_model_summary = false, callbacks = {pruning}}
--     :fit(net, {lt.ones(2, 4)})
--   print(net.weight:eq(0):sum():item())
--   -- prints: 4
--
-- As Lightning's, with nn.utils.prune: `pruning_fn` is the name of one of its functions, or a class
-- below prune.BasePruningMethod. Each time a fraction of the remaining elements is pruned. By
-- default the remaining elements are then reset to their initial values ("the lottery ticket
-- hypothesis", Frankle and Carbin 2018). Checkpoints contain the pruned weights under their plain
-- names; a resumed run restores the masks.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local deepcopy = require "ltrain.nn.deepcopy"
local errors = require "ltrain.core.errors"
local prune = require "ltrain.nn.prune"
local schema = require "ltrain.core.schema"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local ModelPruning = Callback:extend("ModelPruning")
ModelPruning.reads_whole = "parameters" -- strategies that divide them refuse it

--- It runs on all ranks.
ModelPruning.all_ranks = true

ModelPruning.__arguments = "pruning_fn | parameters_to_prune parameter_names "
  .. "use_global_unstructured amount apply_pruning make_pruning_permanent "
  .. "use_lottery_ticket_hypothesis resample_parameters pruning_dim pruning_norm verbose "
  .. "prune_on_train_epoch_end"

local METHODS <const> = { ln_structured = "LnStructured", l1_unstructured = "L1Unstructured",
  random_structured = "RandomStructured", random_unstructured = "RandomUnstructured" }

local function wrong_names(names)
  for _, name in ipairs(names) do
    if name ~= "weight" and name ~= "bias" then
      return "must be 'weight' and 'bias', or one of them: got " .. errors.show(name)
    end
  end
end

local OPTIONS <const> = {
  parameters_to_prune = { type = "table",
    doc = "a list of pairs {module, \"weight\"}; by default all that have parameter_names" },
  parameter_names = { type = "table", check = wrong_names,
    doc = "which parameters of each layer: {\"weight\", \"bias\"} by default" },
  use_global_unstructured = { type = "boolean", default = true,
    doc = "prune the elements with the lowest scores over all parameters together" },
  amount = { type = "number|function", default = 0.5,
    doc = "number of elements, fraction of the remaining elements, or function(epoch)" },
  apply_pruning = { type = "boolean|function", default = true,
    doc = "whether to prune, or function(epoch)" },
  make_pruning_permanent = { type = "boolean", default = true,
    doc = "at the end of training, and in checkpoints, parameters are plain tensors without "
      .. "masks" },
  use_lottery_ticket_hypothesis = { type = "boolean|function", default = true,
    doc = "whether to reset the remaining elements to their initial values, or function(epoch)" },
  resample_parameters = { type = "boolean", default = false,
    doc = "draw new values instead, with the layer's reset_parameters()" },
  pruning_dim = { type = "integer", doc = "the dim of structured methods" },
  pruning_norm = { type = "number", doc = "the norm of 'ln_structured'" },
  verbose = { type = "integer", default = 0, min = 0, max = 2,
    doc = "1: report the pruned fraction, 2: also of each parameter" },
  prune_on_train_epoch_end = { type = "boolean", default = true,
    doc = "prune after an epoch of training; false: after validation" },
}

local function check_method(self, o, pruning_fn)
  local is_named <const> = METHODS[pruning_fn]
  if o.use_global_unstructured and self._method.PRUNING_TYPE ~= "unstructured" then
    errors.blame("callbacks.ModelPruning: use_global_unstructured needs a method whose "
      .. "PRUNING_TYPE is 'unstructured': %s has '%s'", errors.show(pruning_fn),
      self._method.PRUNING_TYPE)
  elseif is_named and pruning_fn:find "_structured$" and not o.pruning_dim then
    errors.blame("callbacks.ModelPruning: '%s' needs pruning_dim", pruning_fn)
  elseif pruning_fn == "ln_structured" and not o.pruning_norm then
    errors.blame("callbacks.ModelPruning: 'ln_structured' needs pruning_norm")
  elseif not is_named and not o.use_global_unstructured then
    errors.blame("callbacks.ModelPruning: a class needs use_global_unstructured = true")
  end
end

---@param pruning_fn string|table "l1_unstructured", "ln_structured", ..., or a class
function ModelPruning:init(pruning_fn, options)
  local o = config.check(options, OPTIONS, "callbacks.ModelPruning")
  if METHODS[pruning_fn] then
    self._method = prune[METHODS[pruning_fn]]
  elseif class.is_class(pruning_fn, prune.BasePruningMethod) then
    self._method = pruning_fn
  else
    errors.blame("callbacks.ModelPruning: pruning_fn must be 'l1_unstructured', "
      .. "'random_unstructured', 'ln_structured', 'random_structured', or a class below "
      .. "nn.utils.prune.BasePruningMethod: got %s", errors.show(pruning_fn))
  end
  check_method(self, o, pruning_fn)
  self.pruning_fn, self.options, self.amount = pruning_fn, o, o.amount
end

--- To be overridden: returns which of a list of pairs {module, name} are pruned.
function ModelPruning.filter_parameters_to_prune(_, parameters) return parameters end

-- All parameters of these names in the module.
local function all_of(module, names)
  local found = {}
  for _, name in ipairs(names) do
    for _, entry in ipairs(walk.modules(module)) do
      local value = rawget(entry.module, name) or rawget(entry.module, name .. "_orig")
      if c.is_parameter(value) then found[#found + 1] = { entry.module, name } end
    end
  end
  return found
end

-- Raises for a pair that is not in the module.
local function check_pairs(module, list)
  local known = {}
  for _, entry in ipairs(walk.modules(module)) do known[entry.module] = true end
  for i, pair in ipairs(list) do
    if type(pair) ~= "table" or not known[pair[1]] or pair[1][pair[2]] == nil then
      errors.blame("callbacks.ModelPruning: parameters_to_prune[%d] must be a module of the model "
        .. "and the name of its parameter: got %s", i, errors.show(pair))
    end
  end
  return list
end

-- The parameter that is trained; of a pruned one that which has all elements.
local function original(pair)
  return rawget(pair[1], pair[2] .. "_orig") or rawget(pair[1], pair[2])
end

local function mask_of(pair) return rawget(pair[1], pair[2] .. "_mask") end

function ModelPruning:setup(_, module)
  local o = self.options
  local list = o.parameters_to_prune and check_pairs(module, o.parameters_to_prune)
    or all_of(module, o.parameter_names or { "weight", "bias" })
  self._pairs = self:filter_parameters_to_prune(list)
  if #self._pairs == 0 then
    errors.blame("callbacks.ModelPruning: %s has no parameter to prune", walk.class_name(module))
  end
  self._first, self._copies, self._names = {}, {}, {}
  for _, entry in ipairs(walk.modules(module)) do self._names[entry.module] = entry.name end
  for i, pair in ipairs(self._pairs) do
    -- Files have the parts of pruned parameters from the start, where they keep them.
    if not o.make_pruning_permanent and not mask_of(pair) then prune.identity(pair[1], pair[2]) end
    self._first[i] = original(pair):detach():clone()
    if o.resample_parameters then
      if not class.has_method(pair[1], "reset_parameters") then
        errors.blame("callbacks.ModelPruning: resample_parameters: %s has no reset_parameters",
          walk.class_name(pair[1]))
      end
      self._copies[pair[1]] = self._copies[pair[1]] or deepcopy(pair[1])
    end
  end
end

-- {zeros, elements} of each.
local function statistics(self)
  local list = {}
  for i, pair in ipairs(self._pairs) do
    local mask = mask_of(pair)
    list[i] = { mask and mask:eq(0):sum():item() or 0, original(pair):numel() }
  end
  return list
end

local function report(self, before, after, amount)
  local sums = { 0, 0, 0 }
  for i, one in ipairs(after) do
    sums[1], sums[2], sums[3] = sums[1] + before[i][1], sums[2] + one[1], sums[3] + one[2]
  end
  local name = self._method.__name
  local text <const> = "%s: pruned %d of %d (%.2f%%), before %d (%.2f%%)"
  local function percent(part, all) return part / math.max(all, 1) * 100 end
  console.say(("ModelPruning: " .. text):format(name, sums[2], sums[3], percent(sums[2], sums[3]),
    sums[1], percent(sums[1], sums[3])))
  for i, pair in ipairs(self.options.verbose == 2 and self._pairs or {}) do
    local now, all = after[i][1], after[i][2]
    console.say(("ModelPruning: %s.%s, amount %s: " .. text):format(self._names[pair[1]],
      pair[2], amount, name, now, all, percent(now, all), before[i][1],
      percent(before[i][1], all)))
  end
end

--- Prunes this amount of the remaining elements.
function ModelPruning:apply_pruning(amount)
  local o, before = self.options, statistics(self)
  if o.use_global_unstructured then
    prune.global_unstructured(self._pairs, self._method, { amount = amount })
  else
    for _, pair in ipairs(self._pairs) do
      prune[self.pruning_fn](pair[1], pair[2], { amount = amount, n = o.pruning_norm,
        dim = o.pruning_dim })
    end
  end
  if o.verbose > 0 and c.dist.rank() == 0 then report(self, before, statistics(self), amount) end
end

local function set(parameter, values)
  local _ <close> = c.no_grad()
  local _ <close> = c.allow_update()
  parameter:copy_(values)
end

--- Resets the pruned parameters to their initial values, or to new ones (resample_parameters).
function ModelPruning:apply_lottery_ticket_hypothesis()
  local drawn = {}
  for module, copy in pairs(self._copies) do
    drawn[module] = deepcopy(copy)
    drawn[module]:reset_parameters()
  end
  for i, pair in ipairs(self._pairs) do
    local copy = drawn[pair[1]]
    set(original(pair), copy and original({ copy, pair[2] }):detach() or self._first[i])
  end
end

--- Removes the masks: the pruned parameters of a module become plain tensors with zeros.
function ModelPruning:make_pruning_permanent(module) -- luacheck: ignore 212
  for _, entry in ipairs(walk.modules(module)) do
    for _, name in ipairs((tree.keys(rawget(entry.module, "_computed") or {}))) do
      if mask_of { entry.module, name } then prune.remove(entry.module, name) end
    end
  end
end

-- What an option is in an epoch.
local function of_epoch(value, epoch)
  if type(value) == "function" then return value(epoch) end
  return value
end

local function run(self, epoch)
  local amount = of_epoch(self.amount, epoch)
  if not of_epoch(self.options.apply_pruning, epoch) or not amount or amount == 0 then return end
  self:apply_pruning(amount)
  if of_epoch(self.options.use_lottery_ticket_hypothesis, epoch) then
    self:apply_lottery_ticket_hypothesis()
  end
end

function ModelPruning:on_train_epoch_end(trainer)
  if self.options.prune_on_train_epoch_end then run(self, trainer.current_epoch) end
end

function ModelPruning:on_validation_epoch_end(trainer)
  local after = not self.options.prune_on_train_epoch_end
  if after and not trainer.sanity_checking and trainer.running.fn == "fit" then
    run(self, trainer.current_epoch)
  end
end

function ModelPruning:on_train_end(_, module)
  if self.options.make_pruning_permanent then self:make_pruning_permanent(module) end
end

function ModelPruning:on_save_checkpoint(_, _, checkpoint)
  if not self.options.make_pruning_permanent then return end
  local state = {}
  for name, value in next, checkpoint.state_dict do state[name] = value end
  for name, mask in next, checkpoint.state_dict do
    local plain = name:match "^(.*)_mask$"
    local orig = plain and state[plain .. "_orig"]
    if orig then
      state[plain], state[name], state[plain .. "_orig"] = orig * mask:to(orig.dtype), nil, nil
    end
  end
  checkpoint.state_dict = state
end

function ModelPruning:state_dict()
  local masks, originals = {}, {}
  for i, pair in ipairs(self._pairs) do
    local mask = mask_of(pair)
    masks[i] = mask or false
    originals[i] = mask and original(pair):detach():clone() or false
  end
  return { masks = masks, originals = originals, first = self._first }
end

function ModelPruning:load_state_dict(saved)
  schema.check(saved, { masks = "table", originals = "table", first = "table" }, "ModelPruning")
  if #saved.masks ~= #self._pairs then
    errors.blame("ModelPruning: the file has %d parameters to prune, here are %d", #saved.masks,
      #self._pairs)
  end
  self._saved = saved
end

-- Of a run that resumes: the optimizers, which know parameters by their plain names, are there.
function ModelPruning:on_train_start()
  local saved = self._saved
  self._saved = nil
  for i, pair in ipairs(saved and self._pairs or {}) do
    self._first[i] = saved.first[i]:to(original(pair).device)
    if saved.masks[i] then
      prune.custom_from_mask(pair[1], pair[2], saved.masks[i])
      set(original(pair), saved.originals[i])
    end
  end
end

return ModelPruning
