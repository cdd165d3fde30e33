-- spec/nn/module_loop_spec.lua: what a module asks of its trainer, with a stand-in for that.

local lt = require "ltrain"
local error_of = require "spec.error_of"

local Net = lt.Module:extend("Net")
function Net:init()
  self.a = lt.parameter(lt.ones(2))
  self.b = lt.parameter(lt.ones(2))
end
function Net:forward(x) return x * 2 end

-- A module with a trainer that has one SGD for each parameter.
local function attached()
  local net = Net()
  net.trainer = {
    optimizers = { lt.optim.SGD { net.a }, lt.optim.SGD { net.b } }, lr_scheduler_configs = {},
  }
  return net
end

describe("a module without a trainer", function()
  it("says so when it logs", function()
    local net = Net()
    assert.matches("module_loop_spec%.lua:%d+: log: the module is not attached to a trainer: Net",
      error_of(function() net:log("loss", 1) end))
    assert.matches("log_dict: the module is not attached", error_of(net.log_dict, net, {}))
    assert.matches("optimizers: the module is not attached", error_of(net.optimizers, net))
  end)

  it("can be called, predicts with forward, runs backward", function()
    local net = Net()
    assert.same({ 2, 2 }, net:predict_step(net.a):tolist())
    net:backward(net(net.a):sum())
    assert.same({ 2, 2 }, net.a.grad:tolist())
  end)
end)

describe("Module:optimizers", function()
  it("gives one optimizer as it is, several as a list", function()
    local net = attached()
    assert.equal(2, #net:optimizers())
    net.trainer.optimizers[2] = nil
    assert.is_not_nil(net:optimizers().param_groups)
  end)
end)

describe("Module:lr_schedulers", function()
  it("gives nil, one, or a list", function()
    local net = attached()
    assert.is_nil(net:lr_schedulers())
    net.trainer.lr_scheduler_configs = { { scheduler = "first" } }
    assert.equal("first", net:lr_schedulers())
    net.trainer.lr_scheduler_configs[2] = { scheduler = "second" }
    assert.same({ "first", "second" }, net:lr_schedulers())
  end)
end)

describe("Module:toggle_optimizer", function()
  it("keeps gradients from the parameters of the others, until it is undone", function()
    local net = attached()
    net:toggle_optimizer(net:optimizers()[1])
    assert.same({ true, false }, { net.a.requires_grad, net.b.requires_grad })
    net:untoggle_optimizer(net:optimizers()[1]) -- as in Lightning
    assert.same({ true, true }, { net.a.requires_grad, net.b.requires_grad })
    net:toggle_optimizer(net:optimizers()[2])
    assert.same({ false, true }, { net.a.requires_grad, net.b.requires_grad })
    net:untoggle_optimizer()
    assert.same({ true, true }, { net.a.requires_grad, net.b.requires_grad })
  end)

  it("needs an optimizer", function()
    local net = attached()
    for _, value in ipairs { false, 1, {} } do
      assert.matches("toggle_optimizer: an optimizer is needed: got ",
        tostring(select(2, pcall(net.toggle_optimizer, net, value or nil))))
    end
  end)

  it("leaves frozen what was frozen", function()
    local net = attached()
    net.b.requires_grad = false
    net:toggle_optimizer(net:optimizers()[1])
    net:untoggle_optimizer()
    assert.is_false(net.b.requires_grad)
  end)
end)

describe("Module:toggled_optimizer", function()
  it("toggles for a scope, also one that ends with an error", function()
    local net = attached()
    local ok = pcall(function()
      local _ <close> = net:toggled_optimizer(net:optimizers()[1])
      assert.same({ true, false }, { net.a.requires_grad, net.b.requires_grad })
      error "end"
    end)
    assert.is_false(ok)
    assert.same({ true, true }, { net.a.requires_grad, net.b.requires_grad })
  end)
end)

describe("Module:clip_gradients", function()
  it("clips by norm or by value, and does nothing without a bound", function()
    local net = attached()
    local optimizer = net:optimizers()[1]
    net.a.grad = lt.tensor { 3.0, 4.0 }
    net:clip_gradients(optimizer, nil)
    net:clip_gradients(optimizer, 0)
    assert.same({ 3, 4 }, net.a.grad:tolist())
    net:clip_gradients(optimizer, 3.5, "value")
    assert.same({ 3, 3.5 }, net.a.grad:tolist())
    net:configure_gradient_clipping(optimizer, 1.0)
    assert.near(1, net.a.grad:square():sum():item(), 1e-5)
  end)

  it("names a wrong algorithm", function()
    local net = attached()
    assert.matches("clip_gradients: gradient_clip_algorithm must be 'norm' or 'value': got 'x'",
      error_of(net.clip_gradients, net, net:optimizers()[1], 1, "x"))
  end)
end)

describe("Module:manual_backward", function()
  it("asks for manual optimization first", function()
    local net = attached()
    assert.matches("manual_backward: set self.automatic_optimization = false in init first",
      error_of(net.manual_backward, net, net.a:sum()))
  end)
end)

describe("Module:load_from_checkpoint", function()
  it("is called on the class", function()
    assert.matches("load_from_checkpoint: call it on the class: Net:load_from_checkpoint%(file%)",
      error_of(Net().load_from_checkpoint, Net(), "file"))
  end)

  it("gives nil and a message when there is no file", function()
    local module, message = Net:load_from_checkpoint("/no/such/file.ckpt")
    assert.is_nil(module)
    assert.matches("/no/such/file%.ckpt", message)
  end)
end)

describe("device and dtype", function()
  it("are those of the first parameter, also when it changes", function()
    local net = lt.Module:extend("Net")()
    assert.equal("f32", net.dtype)
    net.layers = { lt.nn.Linear(1, 1) }
    assert.equal("f32", net.dtype)
    net:to "f64"
    assert.equal("f64", net.dtype)
    net.own = lt.parameter(lt.ones(1)) -- a module's own come before those of modules in it
    assert.equal("f32", net.dtype)
    net.own = nil
    assert.equal("f64", net.dtype)
    net.layers = 3
    assert.equal("f32", net.dtype)
    assert.equal("cpu", net.device)
  end)
end)
