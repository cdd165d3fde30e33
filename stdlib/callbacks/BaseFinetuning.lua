--- stdlib/callbacks/BaseFinetuning.lua: the base class of callbacks that freeze parts of a module
--- and unfreeze them later.
--
-- A subclass overrides `freeze_before_training(module)`, which is called before
-- configure_optimizers, and `finetune_function(module, epoch, optimizer)`, called at the start of
-- each epoch. A resumed run restores added parameter groups and unfrozen parameters.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local schema = require "ltrain.core.schema"
local walk = require "ltrain.core.walk"

local BaseFinetuning = Callback:extend("BaseFinetuning")

--- It runs on all ranks: it changes what is trained.
BaseFinetuning.all_ranks = true
BaseFinetuning.keeps_epoch = true

function BaseFinetuning:init()
  self._unfrozen = {} -- paths of parameters
end

-- The modules of one, or of a list of them, and all below.
local function flatten(modules)
  if walk.is_module(modules) then return modules:modules() end
  if type(modules) ~= "table" then
    errors.blame("callbacks.BaseFinetuning: a module or a list of modules is needed: got %s",
      errors.show(modules))
  end
  walk.refuse_hole(modules, "callbacks.BaseFinetuning: modules")
  local list = {}
  for i, module in ipairs(modules) do
    if not walk.is_module(module) then
      errors.blame("callbacks.BaseFinetuning: modules[%d] must be a module: got %s", i,
        errors.show(module))
    end
    for _, one in ipairs(module:modules()) do list[#list + 1] = one end
  end
  return list
end

local function is_norm(module) return rawget(module, "running_mean") ~= nil end

-- Sets requires_grad of the modules' own parameters.
local function set_grad(modules, wanted, without_norms)
  for _, module in ipairs(flatten(modules)) do
    if not (without_norms and is_norm(module)) then
      for _, value in next, module do
        if c.is_parameter(value) then value:requires_grad_(wanted) end
      end
    end
  end
end

-- Called with a colon as well, `self:freeze(module)`: what follows is one place later then, and the
-- last of it `of_method`.

--- Freezes a module, or a list of modules: no gradients are computed. Options: train_bn (true):
--- batch norm layers remain trainable.
function BaseFinetuning.freeze(modules, train_bn, of_method)
  if class.is_a(modules, BaseFinetuning) then modules, train_bn = train_bn, of_method end
  if type(train_bn) == "table" then train_bn = train_bn.train_bn end
  set_grad(modules, false, train_bn ~= false)
end

--- Makes all parameters of a module, or of a list of modules, trainable.
function BaseFinetuning.make_trainable(modules, of_method)
  set_grad(class.is_a(modules, BaseFinetuning) and of_method or modules, true)
end

--- The parameters of a module that are trainable and not in an optimizer.
function BaseFinetuning.filter_params(module, optimizer, of_method)
  if class.is_a(module, BaseFinetuning) then module, optimizer = optimizer, of_method end
  local known, list = {}, {}
  for _, group in ipairs(optimizer.param_groups) do
    for _, parameter in ipairs(group.params) do known[parameter] = true end
  end
  for _, parameter in ipairs(module:parameters()) do
    if parameter.requires_grad and not known[parameter] then list[#list + 1] = parameter end
  end
  return list
end

local UNFREEZE <const> = {
  modules = { type = "table|object", required = true }, optimizer = { type = "object|table",
    required = true }, lr = { type = "number" }, initial_denom_lr = { type = "number" },
  train_bn = { type = "boolean", default = true, choices = { true } }, -- it trains with the others
}

--- Makes a module trainable, and adds its parameters that are not in the optimizer as a group with
--- the learning rate `lr`; nil: that of the first group divided by `initial_denom_lr` (10). Returns
--- whether there were any.
function BaseFinetuning:unfreeze_and_add_param_group(module, optimizer, lr, initial_denom_lr)
  if optimizer == nil and type(module) == "table" and getmetatable(module) == nil then
    local o = config.check(module, UNFREEZE, "unfreeze_and_add_param_group")
    module, optimizer, lr, initial_denom_lr = o.modules, o.optimizer, o.lr, o.initial_denom_lr
  end
  self.make_trainable(module)
  for name, parameter in self._module:named_parameters() do
    if parameter.requires_grad then self._unfrozen[name] = true end
  end
  local params = self.filter_params(module, optimizer)
  if #params == 0 then return false end
  optimizer:add_param_group { params = params,
    lr = lr or optimizer.param_groups[1].lr / (initial_denom_lr or 10) }
  return true
end

--- To be overridden: freezes what is not trained at first.
function BaseFinetuning:freeze_before_training(module) -- luacheck: ignore 212
  errors.blame("%s: freeze_before_training is not defined", getmetatable(self).__name)
end

--- To be overridden: called at the start of each epoch (from 0) for each optimizer.
function BaseFinetuning:finetune_function(module, epoch, optimizer) -- luacheck: ignore 212
  errors.blame("%s: finetune_function is not defined", getmetatable(self).__name)
end

function BaseFinetuning:setup(_, module, stage)
  self._module = module
  if stage == "fit" then self:freeze_before_training(module) end
end

-- Of a run that resumes: what trained continues doing so.
function BaseFinetuning:on_fit_start(_, module)
  for name, parameter in module:named_parameters() do
    if self._unfrozen[name] then parameter:requires_grad_(true) end
  end
end

function BaseFinetuning:on_train_epoch_start(trainer, module)
  for _, optimizer in ipairs(trainer.optimizers) do
    self:finetune_function(module, trainer.current_epoch, optimizer)
  end
end

function BaseFinetuning:state_dict()
  local names = {}
  for name in pairs(self._unfrozen) do names[#names + 1] = name end
  table.sort(names)
  return { unfrozen = names }
end

function BaseFinetuning:load_state_dict(saved)
  schema.check(saved, { unfrozen = { list = "string" } }, getmetatable(self).__name)
  self._unfrozen = {}
  for _, name in ipairs(saved.unfrozen) do self._unfrozen[name] = true end
end

return BaseFinetuning
