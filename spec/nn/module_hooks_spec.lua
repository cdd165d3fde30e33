-- spec/nn/module_hooks_spec.lua: hooks of modules.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local nn <const> = lt.nn

local Scale = lt.Module:extend("Scale")
function Scale:forward(x, by) return x * (by or 2) end

local Pair = lt.Module:extend("Pair")
function Pair:forward(a, b) return a + b, a * b end -- luacheck: no self

local function leaf(values) return lt.tensor(values, { requires_grad = true }) end

describe("register_forward_pre_hook", function()
  it("gets the module and its arguments, and may replace them", function()
    local net, seen = Scale(), nil
    local handle = net:register_forward_pre_hook(function(module, args) seen = { module, args } end)
    assert.equal(6.0, net(lt.tensor(3.0)):item())
    assert.equal(net, seen[1])
    assert.equal(1, seen[2].n)
    handle:remove()
    handle:remove()
    net:register_forward_pre_hook(function(_, args) return { args[1], 5 } end)
    assert.equal(15.0, net(lt.tensor(3.0)):item())
    net:register_forward_pre_hook(function(_, args) return args[1] + 1 end)
    assert.equal(8.0, net(lt.tensor(3.0)):item())
  end)

  it("runs in order, prepended ones first", function()
    local net, order = Scale(), {}
    for _, name in ipairs { "a", "b" } do
      net:register_forward_pre_hook(function() order[#order + 1] = name end)
    end
    net:register_forward_pre_hook(function() order[#order + 1] = "c" end, { prepend = true })
    net(lt.ones(1))
    assert.same({ "c", "a", "b" }, order)
  end)
end)

describe("register_forward_hook", function()
  it("gets the output, and may replace it", function()
    local net, features = nn.Sequential(Scale(), Scale()), nil
    local handle = net[1]:register_forward_hook(function(_, args, output)
      features = { args[1]:item(), output:item() }
    end)
    assert.equal(12.0, net(lt.tensor(3.0)):item())
    assert.same({ 3.0, 6.0 }, features)
    handle:remove()
    net[1]:register_forward_hook(function(_, _, output) return output + 1 end)
    assert.equal(14.0, net(lt.tensor(3.0)):item())
  end)

  it("gets several results as a list", function()
    local net = Pair()
    do
      local _ <close> = net:register_forward_hook(function(_, _, output)
        return { output[2], output[1] }
      end)
      local a, b = net(lt.tensor(2.0), lt.tensor(5.0))
      assert.same({ 10.0, 7.0 }, { a:item(), b:item() })
    end
    assert.equal(7.0, net(lt.tensor(2.0), lt.tensor(5.0)):item())
    net:register_forward_hook(function() return 3 end)
    assert.matches("forward hook: forward returned 2 values: the hook must return a list: got 3",
      error_of(net, lt.ones(1), lt.ones(1)))
  end)
end)

describe("register_full_backward_hook", function()
  it("gets the gradients by arguments and results, and may replace the former", function()
    local net, seen = Pair(), {}
    local handle = net:register_full_backward_hook(function(_, inputs, outputs)
      seen = { inputs, outputs }
    end)
    local a, b = leaf { 2.0 }, leaf { 5.0 }
    local y, z = net(a, b)
    ;(y * 3 + z):sum():backward()
    assert.same({ 8.0, 5.0 }, { seen[1][1]:item(), seen[1][2]:item() })
    assert.same({ 3.0, 1.0 }, { seen[2][1]:item(), seen[2][2]:item() })
    assert.same({ { 8.0 }, { 5.0 } }, { a.grad:tolist(), b.grad:tolist() })
    handle:remove()
    a.grad, b.grad = nil, nil
    net:register_full_backward_hook(function(_, inputs) return { inputs[1] * 10, inputs[2] } end)
    y, z = net(a, b)
    ;(y * 3 + z):sum():backward()
    assert.same({ { 80.0 }, { 5.0 } }, { a.grad:tolist(), b.grad:tolist() })
  end)

  it("runs once a call, also where no argument requires grad", function()
    local net, count = nn.Linear(2, 2), 0
    net:register_full_backward_hook(function(_, inputs, outputs)
      assert.is_nil(inputs[1])
      assert.same({ 3, 2 }, outputs[1].shape)
      count = count + 1
    end)
    net(lt.ones(3, 2)):sum():backward()
    assert.equal(1, count)
    assert(net.weight.grad)
    lt.no_grad(net, lt.ones(3, 2))
    assert.equal(1, count)
  end)
end)

describe("a hook", function()
  it("must be a function; unknown options are errors", function()
    local net = Scale()
    assert.matches("register_forward_hook: hook must be a function", error_of(function()
      net:register_forward_hook(3)
    end))
    assert.matches("unknown option 'prepent'; did you mean 'prepend'", error_of(function()
      net:register_forward_hook(print, { prepent = true })
    end))
  end)

  it("does not enter the state, and goes with its module", function()
    local net = nn.Linear(2, 2)
    net:register_forward_hook(print)
    assert.same({ "bias", "weight" }, (function()
      local names = {}
      for name in pairs(net:state_dict()) do names[#names + 1] = name end
      table.sort(names)
      return names
    end)())
    local weak = setmetatable({ net }, { __mode = "v" })
    net = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak[1])
  end)
end)

describe("register_full_backward_pre_hook", function()
  it("changes the gradients that enter a module", function()
    local net, x = Scale(), leaf { 1.0, 2.0 }
    local handle = net:register_full_backward_pre_hook(function(module, grads)
      assert.equal(net, module)
      return { grads[1] * 10 }
    end)
    local seen
    net:register_full_backward_hook(function(_, inputs, outputs)
      seen = { inputs[1]:tolist(), outputs[1]:tolist() }
    end)
    net(x):sum():backward()
    assert.same({ 20, 20 }, x.grad:tolist())
    assert.same({ { 20, 20 }, { 10, 10 } }, seen)
    handle:remove()
    x.grad = nil
    net(x):sum():backward()
    assert.same({ 2, 2 }, x.grad:tolist())
  end)
end)

describe("register_forward_hook{always_call = true}", function()
  it("is called after an error too", function()
    local net, called = Scale(), 0
    function net.forward() error "no" end
    net:register_forward_hook(function(_, args, output)
      called = called + 1
      assert.equal(1, args.n)
      assert.is_nil(output)
    end, { always_call = true })
    net:register_forward_hook(function() called = 100 end)
    assert.matches("no", error_of(net, lt.ones(1)))
    assert.equal(1, called)
  end)
end)

describe("Module:get_submodule", function()
  it("finds what a path names, parameters and buffers likewise", function()
    local net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm2d(3))
    assert.equal(net[1], net:get_submodule "0")
    assert.equal(net, net:get_submodule "")
    assert.equal(net[1].weight, net:get_parameter "0.weight")
    assert.equal(net[2].running_mean, net:get_buffer "1.running_mean")
    assert.matches("get_parameter: Sequential has no '0.weigth'; did you mean '0.weight'",
      error_of(net.get_parameter, net, "0.weigth"))
  end)
end)
