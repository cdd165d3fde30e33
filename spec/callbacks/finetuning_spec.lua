-- spec/callbacks/finetuning_spec.lua: BackboneFinetuning: what trains when, learning rates,
-- resuming.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local BackboneFinetuning <const> = lt.callbacks.BackboneFinetuning

-- y = head * norm(backbone * x); the optimizer gets what is trainable, or all.
local function new_net(all)
  local net = lt.nn.Sequential()
  lt.seed(4)
  net.backbone = lt.nn.Sequential(lt.nn.Linear(1, 2), lt.nn.BatchNorm1d(2))
  net.head = lt.nn.Linear(2, 1)
  function net:forward(x)
    local y = self.head(self.backbone(x))
    return y
  end
  function net:training_step(x) return (self(x) - x * 2):square():mean() end
  function net:configure_optimizers()
    local list = {}
    for _, parameter in ipairs(self:parameters()) do
      if all or parameter.requires_grad then list[#list + 1] = parameter end
    end
    return lt.optim.SGD(list, { lr = 0.1 })
  end
  return net
end

local batches <const> = { lt.tensor { { 1.0 }, { 2.0 }, { 4.0 } }, lt.tensor { { 3.0 }, { 1.0 } } }

local function trainer(options, more)
  local o = { max_epochs = 5, callbacks = { BackboneFinetuning(options) } }
  for name, value in pairs(more or {}) do o[name] = value end
  return tiny.trainer(o)
end

-- Learning rates of the groups, by epochs.
local function rates_of(net)
  local rates = {}
  function net:on_train_epoch_end()
    local text = {}
    for i, group in ipairs(self.trainer.optimizers[1].param_groups) do
      text[i] = ("%.4g"):format(group.lr)
    end
    rates[#rates + 1] = table.concat(text, " ")
  end
  return rates
end

describe("BackboneFinetuning", function()
  it("trains the backbone from its epoch on, with a rate that grows to the other", function()
    local net = new_net()
    local before = net.backbone[1].weight:detach():clone()
    trainer({ unfreeze_backbone_at_epoch = 2, backbone_initial_ratio_lr = 0.4 }, { max_epochs = 2 })
      :fit(net, batches)
    assert.same(before:tolist(), net.backbone[1].weight:tolist())
    assert.is_false(net.backbone[1].weight.requires_grad)
    assert.is_true(net.backbone[2].weight.requires_grad) -- train_bn
    net = new_net()
    local rates = rates_of(net)
    trainer({ unfreeze_backbone_at_epoch = 2, backbone_initial_ratio_lr = 0.4 }):fit(net, batches)
    assert.same({ "0.1", "0.1", "0.1 0.04", "0.1 0.08", "0.1 0.1" }, rates)
    assert.not_same(before:tolist(), net.backbone[1].weight:tolist())
  end)

  it("takes a first rate, a function, and no limit", function()
    local net = new_net()
    local rates = rates_of(net)
    trainer({ unfreeze_backbone_at_epoch = 1, backbone_initial_lr = 0.05, train_bn = false,
      lambda_func = function(epoch) return epoch end, should_align = false }, { max_epochs = 4 })
      :fit(net, batches)
    assert.same({ "0.1", "0.1 0.05", "0.1 0.15", "0.1 0.6" }, rates)
    net = new_net()
    trainer({ unfreeze_backbone_at_epoch = 9, train_bn = false }, { max_epochs = 1 })
      :fit(net, batches)
    assert.is_false(net.backbone[2].weight.requires_grad)
  end)

  it("leaves the groups of an optimizer that has all parameters", function()
    local net = new_net(true)
    local before, rates = net.backbone[1].weight:detach():clone(), rates_of(net)
    trainer({ unfreeze_backbone_at_epoch = 1 }, { max_epochs = 3 }):fit(net, batches)
    assert.same({ "0.1", "0.1", "0.1" }, rates)
    assert.not_same(before:tolist(), net.backbone[1].weight:tolist())
  end)

  it("resumes exactly, before and after its epoch", function()
    local o <const> = { unfreeze_backbone_at_epoch = 2 }
    local whole, path = new_net(), tiny.folder()
    trainer(o):fit(whole, batches)
    for steps = 2, 9 do
      local cut = trainer(o, { max_steps = steps })
      cut:fit(new_net(), batches)
      cut:save_checkpoint(path)
      local rest = new_net()
      trainer(o):fit(rest, batches, { ckpt_path = path })
      for name, parameter in whole:named_parameters() do
        local same
        for other, value in rest:named_parameters() do
          if other == name then same = value end
        end
        assert.same(parameter:tolist(), same:tolist(), ("%d %s"):format(steps, name))
      end
    end
  end)

  it("reports a module without a backbone, and wrong options", function()
    local t = trainer {}
    assert.matches("the module must have a module 'backbone': got nil",
      tiny.error_of(t.fit, t, tiny.Line(), tiny.same(1)))
    assert.matches("unfreeze_backbone_at_epoch must be at least 0: got %-1",
      tiny.error_of(BackboneFinetuning, { unfreeze_backbone_at_epoch = -1 }))
  end)
end)

describe("BaseFinetuning", function()
  it("has to be given what freezes and what trains", function()
    local Mine = lt.callbacks.BaseFinetuning:extend "Mine"
    local t = tiny.trainer({ callbacks = { Mine() } })
    assert.matches("Mine: freeze_before_training is not defined",
      tiny.error_of(t.fit, t, tiny.Line(), tiny.same(1)))
    function Mine.freeze_before_training() end
    assert.matches("Mine: finetune_function is not defined",
      tiny.error_of(t.fit, t, tiny.Line(), tiny.same(1)))
  end)
end)

describe("BaseFinetuning", function()
  it("is called with a colon or a dot, and by names", function()
    local Late = lt.callbacks.BaseFinetuning:extend "Late"
    function Late:freeze_before_training(net) self:freeze(net.backbone, { train_bn = false }) end
    local frozen
    function Late:finetune_function(net, epoch, optimizer)
      if epoch == 0 then frozen = net.backbone:is_frozen() end
      if epoch == 1 then
        self:unfreeze_and_add_param_group { modules = net.backbone, optimizer = optimizer, lr = 0.2,
          train_bn = true }
      end
    end
    local net = new_net()
    local rates = rates_of(net)
    trainer({}, { callbacks = { Late() }, max_epochs = 2 }):fit(net, batches)
    assert.is_true(frozen)
    assert.same({ "0.1", "0.1 0.2" }, rates)
  end)
end)
