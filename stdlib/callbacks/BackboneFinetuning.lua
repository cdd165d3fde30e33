--- stdlib/callbacks/BackboneFinetuning.lua: trains the other parameters of a module first, then
--- also its backbone, with a learning rate that grows to theirs.
--
-- The backbone is the module's field `backbone`, or another one. Its parameters are frozen before
-- configure_optimizers: give the optimizer those with requires_grad. At the given epoch they become
-- a separate parameter group.
local BaseFinetuning = require "ltrain.callbacks.BaseFinetuning"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local schema = require "ltrain.core.schema"
local walk = require "ltrain.core.walk"

local BackboneFinetuning = BaseFinetuning:extend("BackboneFinetuning")

local OPTIONS <const> = {
  unfreeze_backbone_at_epoch = { type = "integer", default = 10, min = 0,
    doc = "the epoch (from 0) from which the backbone is trained" },
  backbone = { type = "string", default = "backbone", doc = "the module's field" },
  lambda_func = { type = "function",
    doc = "function(epoch) that returns the factor by which the backbone's learning rate is "
      .. "multiplied at each epoch; 2 by default" },
  backbone_initial_ratio_lr = { type = "number", default = 0.1, above = 0,
    doc = "its initial learning rate, as a fraction of that of the first group" },
  backbone_initial_lr = { type = "number", above = 0, doc = "its initial learning rate, instead" },
  should_align = { type = "boolean", default = true,
    doc = "its learning rate does not exceed that of the first group" },
  train_bn = { type = "boolean", default = true, doc = "always train batch norm layers of the "
    .. "backbone" },
  verbose = { type = "boolean", default = false, doc = "print learning rates" },
}

BackboneFinetuning.__arguments = "| unfreeze_backbone_at_epoch lambda_func "
  .. "backbone_initial_ratio_lr backbone_initial_lr should_align initial_denom_lr train_bn verbose "
  .. "rounding"

--- BackboneFinetuning{unfreeze_backbone_at_epoch = 5}
function BackboneFinetuning:init(options)
  BaseFinetuning.init(self)
  local o = config.check(options, OPTIONS, "callbacks.BackboneFinetuning")
  for name, value in next, o do self[name] = value end
end

--- Freezes the backbone.
function BackboneFinetuning:freeze_before_training(module)
  local backbone = module[self.backbone]
  if not walk.is_module(backbone) then
    errors.blame("BackboneFinetuning: the module must have a module '%s': got %s", self.backbone,
      errors.show(backbone))
  end
  self.freeze(backbone, self.train_bn)
end

local function unfreeze(self, module, optimizer)
  local first = optimizer.param_groups[1].lr
  local lr = self.backbone_initial_lr or first * self.backbone_initial_ratio_lr
  if self:unfreeze_and_add_param_group(module[self.backbone], optimizer, lr) then
    self._group, self._lr = #optimizer.param_groups, lr
  end
end

local function raise(self, epoch, optimizer)
  local first = optimizer.param_groups[1].lr
  local lr = self._lr * (self.lambda_func and self.lambda_func(epoch + 1) or 2.0)
  if self.should_align and lr > first then lr = first end
  optimizer.param_groups[self._group].lr, self._lr = lr, lr
end

--- Unfreezes the backbone at its epoch, and changes its learning rate at later epochs.
function BackboneFinetuning:finetune_function(module, epoch, optimizer)
  if epoch == self.unfreeze_backbone_at_epoch then
    unfreeze(self, module, optimizer)
  elseif epoch > self.unfreeze_backbone_at_epoch and self._group then
    raise(self, epoch, optimizer)
  else
    return
  end
  if self.verbose and self._lr then
    module.trainer:say(("BackboneFinetuning: epoch %d: learning rates %g, of the backbone %g")
      :format(epoch, optimizer.param_groups[1].lr, self._lr))
  end
end

function BackboneFinetuning:state_dict()
  local saved = BaseFinetuning.state_dict(self)
  saved.group, saved.lr = self._group, self._lr
  return saved
end

function BackboneFinetuning:load_state_dict(saved)
  schema.check(saved, { group = "count?", lr = "number?" }, "BackboneFinetuning")
  BaseFinetuning.load_state_dict(self, saved)
  self._group, self._lr = saved.group, saved.lr
end

return BackboneFinetuning
