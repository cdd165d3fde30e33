-- spec/trainer/frozen_spec.lua: what is frozen, modes and groups of a fit that unfreezes as it goes
-- are in the file; another class of optimizer is refused.
local c = require "ltrain.c"
local lt = require "ltrain"
local nn = lt.nn
local tiny = require "spec.trainer.tiny"

local path
before_each(function() path = tiny.folder() .. ".ckpt" end)
after_each(function() os.remove(path) end)

local Net = lt.Module:extend("Net")

function Net:init(trainable_only)
  self.trainable_only = trainable_only
  self.backbone = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm2d(4), nn.Dropout(0.3))
  self.head = nn.Linear(4, 1)
  self.backbone:freeze()
end

function Net:forward(x)
  local hidden = self.backbone[1](x):reshape(-1, 4, 1, 1)
  hidden = self.backbone[3](self.backbone[2](hidden)):reshape(-1, 4)
  local y = self.head(hidden)
  return y
end

function Net:training_step(x)
  local loss = (self(x) - 1):square():mean()
  return loss
end

function Net:validation_step(x) self:log("val_loss", self:training_step(x)) end

function Net:configure_optimizers()
  local list = { names = {} }
  for name, parameter in self:named_parameters() do
    if parameter.requires_grad or not self.trainable_only then
      list[#list + 1], list.names[#list + 1] = parameter, name
    end
  end
  local optimizer = lt.optim.Adam(list, { lr = 0.05 })
  return { optimizer }, { lt.optim.StepLR(optimizer, 1, { gamma = 0.9 }) }
end

-- Unfreezes the linear layer at the start of epoch 1 (from 0), all at that of epoch 2.
local Unfreeze = lt.Callback:extend("Unfreeze")
Unfreeze.all_ranks = true
function Unfreeze.on_train_epoch_start(_, trainer, net)
  if trainer.current_epoch == 1 then
    net.backbone[1]:requires_grad_(true)
  elseif trainer.current_epoch == 2 then
    net.backbone:unfreeze()
  else
    return
  end
  if net.trainable_only then
    local layer = net.backbone[trainer.current_epoch]
    trainer.optimizers[1]:add_param_group { params = layer:parameters(),
      lr = 0.01 * trainer.current_epoch }
  end
end

local data = {}
for i = 1, 3 do data[i] = lt.tensor { { i, 1 }, { -1, i * 0.5 }, { 0.25, -i } } end

local function bits(net)
  local list = {}
  for name, tensor in pairs(net:state_dict()) do list[name] = c.io.crc32(tensor) end
  return list
end

-- What a run has in the end: weights, what is frozen, modes, groups.
local function outcome(net, trainer)
  local frozen, evaluating = {}, {}
  for name, parameter in net:named_parameters() do frozen[name] = not parameter.requires_grad end
  for name, module in net:named_modules() do evaluating[name] = not module.training end
  local groups = trainer.optimizers[1]:state_dict().param_groups
  return { bits = bits(net), frozen = frozen, evaluating = evaluating, groups = groups }
end

-- The whole run, saved where `when(trainer, batch_idx)` says so; `hook` is where it asks.
local function whole(trainable_only, hook, when)
  lt.seed(3)
  local net, saving = Net(trainable_only), lt.Callback()
  saving[hook] = function(_, trainer, _, _, _, batch_idx)
    if when(trainer, batch_idx) and not c.io.kind(path) then trainer:save_checkpoint(path) end
  end
  local trainer = tiny.trainer { max_epochs = 4, callbacks = { Unfreeze(), saving } }
  trainer:fit(net, data, data)
  return outcome(net, trainer)
end

local function resumed(trainable_only)
  lt.seed(4)
  local net = Net(trainable_only)
  local trainer = tiny.trainer { max_epochs = 4, callbacks = { Unfreeze() } }
  trainer:fit(net, data, data, { ckpt_path = path })
  return outcome(net, trainer)
end

describe("a fit that unfreezes as it goes", function()
  for _, trainable_only in ipairs { false, true } do
    local name = trainable_only and "with groups that are added" or "with one group"
    it("resumes bit for bit " .. name, function()
      for epoch = 0, 3 do
        local want = whole(trainable_only, "on_train_batch_end", function(trainer, batch_idx)
          return trainer.current_epoch == epoch and batch_idx == epoch % 3
        end)
        assert.same(want, resumed(trainable_only))
        os.remove(path)
      end
    end)
  end

  it("saves the modes of training from within validation", function()
    local want = whole(true, "on_validation_epoch_end", function(trainer)
      return trainer.current_epoch == 1
    end)
    assert.same(want, resumed(true))
    local text = c.io.json_decode(select(2, c.io.load_safetensors(path)).ltrain)
    assert.same({ "backbone", "backbone.0", "backbone.1", "backbone.2" }, text.modes.evaluating)
    assert.same({ "backbone.1.weight", "backbone.1.bias" }, text.modes.frozen)
  end)

  it("names a parameter of an added group that is no more", function()
    whole(true, "on_train_batch_end", function(trainer) return trainer.current_epoch == 1 end)
    local optimizer = lt.optim.Adam(Net(true).head:parameters(), { lr = 0.05 })
    local saved = c.io.json_decode(select(2, c.io.load_safetensors(path)).ltrain)
    local state = { state = {}, param_groups = saved.optimizer_states[1].param_groups }
    local net = Net(true)
    net.backbone = nn.Identity()
    optimizer:use_names_of(net)
    assert.matches("optim.Adam: load_state_dict: group 2 has the parameter 'backbone.0.weight'",
      tiny.error_of(optimizer.load_state_dict, optimizer, state))
  end)
end)

describe("a file of another optimizer or scheduler", function()
  local function net_with(make, schedule)
    local net = tiny.Line()
    function net:configure_optimizers()
      local optimizer = make(self:parameters(), { lr = 0.1 })
      return { optimizer }, { schedule and schedule(optimizer) }
    end
    return net
  end

  local function save(...)
    local trainer = tiny.trainer()
    trainer:fit(net_with(...), tiny.same(2))
    trainer:save_checkpoint(path)
  end

  local function resume(options, ...)
    local net, trainer = net_with(...), tiny.trainer { max_epochs = 2 }
    options.ckpt_path = path
    trainer:fit(net, tiny.same(2), options)
    return net, trainer
  end

  it("is refused with both names, either way round", function()
    local names = { SGD = lt.optim.SGD, Adam = lt.optim.Adam, AdamW = lt.optim.AdamW }
    for from, make in pairs(names) do
      save(make)
      for to, other in pairs(names) do
        if from ~= to then
          assert.matches(("has the state of the optimizer %s, configure_optimizers gave %s: give "
            .. "fit {ckpt_path = ..., weights_only = true}"):format(from, to),
            tiny.error_of(resume, {}, other), 1, true)
        end
      end
    end
  end)

  it("is refused for schedulers", function()
    local function step(optimizer) return lt.optim.StepLR(optimizer, 1) end
    local function cosine(optimizer) return lt.optim.CosineAnnealingLR(optimizer, 4) end
    save(lt.optim.SGD, step)
    assert.matches("has the state of the scheduler StepLR, configure_optimizers gave "
      .. "CosineAnnealingLR", tiny.error_of(resume, {}, lt.optim.SGD, cosine))
    assert.matches("has the state of 1 schedulers, configure_optimizers gave 0",
      tiny.error_of(resume, {}, lt.optim.SGD))
  end)

  it("gives its weights alone with weights_only = true", function()
    save(lt.optim.SGD)
    local start = c.io.load_safetensors(path)["model.w"]:item()
    local first
    local net, trainer = net_with(lt.optim.Adam), tiny.trainer()
    function net:on_train_start() first = self.w:item() end
    trainer:fit(net, tiny.same(2), { ckpt_path = path, weights_only = true })
    assert.equal(start, first)
    assert.equal(2, trainer.global_step)
    assert.equal(1, trainer.current_epoch)
    assert.equal(2, trainer.optimizers[1].state[net.w].step)
    assert.matches("fit: weights_only must be true or false: got 1", tiny.error_of(resume,
      { weights_only = 1 }, lt.optim.SGD), 1, true)
  end)

  it("is refused by load_state_dict without a Trainer too", function()
    local w = { lt.parameter(lt.zeros(1)) }
    local sgd, adam = lt.optim.SGD(w, { lr = 0.1 }), lt.optim.Adam(w)
    assert.matches("optim.Adam: load_state_dict: the state is that of SGD, not of Adam",
      tiny.error_of(adam.load_state_dict, adam, sgd:state_dict()))
    local step, cosine = lt.optim.StepLR(sgd, 2), lt.optim.CosineAnnealingLR(sgd, 2)
    assert.matches("CosineAnnealingLR: load_state_dict: the state is that of StepLR, not of "
      .. "CosineAnnealingLR", tiny.error_of(cosine.load_state_dict, cosine, step:state_dict()))
  end)
end)
