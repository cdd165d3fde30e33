-- spec/nn/module_spec.lua: what a module holds, in which order, under which names.

local lt = require "ltrain"
local class = require "ltrain.core.class"
local error_of = require "spec.error_of"

local Module <const> = lt.Module

local function parameter(...)
  return lt.parameter(lt.zeros(...))
end

local function names(iterator)
  local list = {}
  for name in iterator do list[#list + 1] = name end
  return list
end

local Layer = Module:extend("Layer")
function Layer:init()
  self.weight = parameter(2, 3)
  self.bias = parameter(2)
end
function Layer:forward(x) return x + 1 end

local Net = Module:extend("Net")
function Net:init()
  self.zeta = Layer()
  self.alpha = Layer()
end

describe("Module:named_parameters", function()
  it("goes in order of first assignment, not of the alphabet", function()
    assert.same({ "zeta.weight", "zeta.bias", "alpha.weight", "alpha.bias" },
      names(Net():named_parameters()))
  end)

  it("keeps a field's place when it is assigned again", function()
    local net = Net()
    net.zeta = nil
    net.zeta = Layer()
    assert.equal("zeta.weight", (net:named_parameters()()))
  end)

  it("puts a module's own parameters before those of its children", function()
    local net = Net()
    net.scale = parameter(1)
    assert.equal("scale", (net:named_parameters()()))
  end)

  it("counts positions from 0 and goes into plain tables to any depth", function()
    local net = Module.adopt {}
    net.blocks = { { attention = Layer() }, { attention = Layer() } }
    assert.same({ "blocks.0.attention.weight", "blocks.0.attention.bias",
                  "blocks.1.attention.weight", "blocks.1.attention.bias" },
      names(net:named_parameters()))
  end)

  it("sorts the names of plain tables", function()
    local net = Module.adopt {}
    net.heads = { z = Layer(), a = Layer(), m = Layer() }
    assert.same({ "heads.a.weight", "heads.a.bias", "heads.m.weight", "heads.m.bias",
                  "heads.z.weight", "heads.z.bias" }, names(net:named_parameters()))
  end)

  it("takes the mark, not requires_grad, for what makes a parameter", function()
    local net = Net()
    net:requires_grad_(false)
    net.loss = lt.zeros(3, { requires_grad = true })
    assert.equal(4, #net:parameters())
  end)

  it("names a parameter met twice once, under its first path", function()
    local net = Net()
    net.alpha.weight = net.zeta.weight
    assert.same({ "zeta.weight", "zeta.bias", "alpha.bias" }, names(net:named_parameters()))
  end)

  it("names a module met twice once", function()
    local net = Net()
    net.alpha = net.zeta
    assert.same({ "zeta.weight", "zeta.bias" }, names(net:named_parameters()))
  end)

  it("leaves out fields that begin with _ and the trainer", function()
    local net = Net()
    net._hidden, net.trainer = Layer(), { model = net }
    assert.equal(4, #net:parameters())
  end)

  it("leaves plain data alone, also when it is mixed or contains itself", function()
    local net = Net()
    local data = { 1, 2, name = "x" }
    data.data = data
    net.data = data
    assert.equal(4, #net:parameters())
  end)

  it("leaves objects of other classes alone", function()
    local net = Net()
    net.other = setmetatable({ parameter(1) }, {})
    assert.equal(4, #net:parameters())
  end)

  it("raises on a table with positions and names that has modules, with its path", function()
    local net = Net()
    net.blocks = { { Layer(), head = Layer() } }
    assert.matches("module_spec%.lua:%d+: Net%.blocks%[1%] has modules or parameters under "
      .. "both positions and names", error_of(function() net:parameters() end))
  end)

  it("raises on a module under a key that is neither", function()
    local net = Net()
    net.blocks = { [true] = Layer() }
    assert.matches("Net%.blocks has modules", error_of(net.parameters, net))
  end)

  it("raises on a module inside itself, with its path", function()
    local net = Net()
    net.alpha.parent = { net }
    assert.matches("Net%.alpha%.parent%[1%]: a module inside itself", error_of(net.parameters, net))
  end)
end)

describe("Module:parameters", function()
  it("carries the names", function()
    local list = Layer():parameters()
    assert.equal(2, #list)
    assert.same({ "weight", "bias" }, list.names)
  end)

  it("gives the same objects each time", function()
    local net = Net()
    assert.is_true(rawequal(net:parameters()[1], net:parameters()[1]))
    assert.is_true(rawequal(net:parameters()[1], net.zeta.weight))
  end)
end)

describe("Module:named_modules", function()
  it("begins with the module itself, then goes parents first", function()
    local net = Net()
    net.alpha.inner = Layer()
    assert.same({ "", "zeta", "alpha", "alpha.inner" }, names(net:named_modules()))
  end)
end)

describe("Module:children", function()
  it("lists what the module holds itself", function()
    local net = Net()
    net.alpha.inner = Layer()
    assert.same({ "zeta", "alpha" }, names(net:named_children()))
    assert.is_true(rawequal(net.zeta, net:children()[1]))
  end)
end)

describe("Module:register_buffer", function()
  it("puts a tensor into the state that is not a parameter", function()
    local net = Layer()
    net:register_buffer("mean", lt.zeros(2))
    assert.same({ "weight", "bias" }, names(net:named_parameters()))
    assert.same({ "mean" }, names(net:named_buffers()))
    assert.is_not_nil(net:state_dict().mean)
  end)

  it("stays a buffer when the field is replaced", function()
    local net = Layer()
    net:register_buffer("mean", lt.zeros(2))
    net.mean = lt.ones(2)
    assert.same({ 1, 1 }, net:state_dict().mean:tolist())
  end)

  it("is not saved with persistent = false", function()
    local net = Layer()
    net:register_buffer("mask", lt.zeros(2), { persistent = false })
    assert.equal(1, #net:buffers())
    assert.is_nil(net:state_dict().mask)
  end)

  it("refuses what is not a tensor", function()
    assert.matches("register_buffer: 'mean' must be a tensor: got 3",
      error_of(Layer().register_buffer, Layer(), "mean", 3))
  end)
end)

describe("assigning a field", function()
  it("raises for a name of a Module method, at the user's line", function()
    local net = Net()
    assert.matches("module_spec%.lua:%d+: Net: 'train' is a method of every Module",
      error_of(function() net.train = 3 end))
  end)

  it("lets a method of the loop be replaced by a function, by nothing else", function()
    local net = Net()
    net.forward = function(_, x) return x end
    assert.equal(5, net(5))
    assert.matches("'forward' is a method of every Module",
      error_of(function() Net().forward = 3 end))
  end)

  it("counts hooks that are assigned", function()
    local net = Net()
    local before = net:hooks_version()
    net.on_train_start = function() end
    assert.equal(before + 1, net:hooks_version())
  end)
end)

describe("calling a module", function()
  it("runs forward with all arguments and results", function()
    local net = Net()
    function net:forward(a, b) return b, a end
    assert.same({ 2, 1 }, { net(1, 2) })
  end)

  it("raises when forward is missing", function()
    assert.matches("module_spec%.lua:%d+: Net: forward is not defined",
      error_of(function() Net()(1) end))
  end)

  it("names a forward that is misspelt, of the object or of a class", function()
    local Wrong = lt.Module:extend("Wrong")
    function Wrong.foward() end
    local Below, other = Wrong:extend("Below"), lt.Module:extend("Other")()
    function other.froward() end
    assert.matches("Wrong: forward is not defined, but 'foward' is$", error_of(Wrong(), 1))
    assert.matches("Below: forward is not defined, but 'foward' is$", error_of(Below(), 1))
    assert.matches("Other: forward is not defined, but 'froward' is$", error_of(other, 1))
  end)
end)

describe("Module.adopt", function()
  it("makes a module of a plain table", function()
    local net = Module.adopt {
      layer = Layer(),
      forward = function(self, x) return self.layer(x) end,
    }
    assert.equal(3, net(2))
    net.late = Layer()
    assert.same({ "layer.weight", "layer.bias", "late.weight", "late.bias" },
      names(net:named_parameters()))
  end)

  it("gives back a module as it is", function()
    local net = Net()
    assert.is_true(rawequal(net, Module.adopt(net)))
  end)

  it("refuses another metatable, a class, and a name of a Module method", function()
    assert.matches("a module is a table without metatable",
      error_of(Module.adopt, setmetatable({}, {})))
    assert.matches("^[^:]*:%d+: Net is a class: call it to make a module",
      error_of(Module.adopt, Net))
    assert.matches("'train' is a method of every Module", error_of(Module.adopt, { train = 1 }))
  end)
end)

describe("Module:train and eval", function()
  it("set the mode of all modules below", function()
    local net = Net()
    assert.is_true(net.alpha.training)
    net:eval()
    assert.is_false(net.training)
    assert.is_false(net.alpha.training)
    net:train()
    assert.is_true(net.alpha.training)
  end)
end)

describe("Module:requires_grad_, freeze, unfreeze", function()
  it("set the flag of all parameters", function()
    local net = Net():freeze()
    assert.is_false(net.alpha.weight.requires_grad)
    assert.is_false(net.training)
    assert.equal(4, #net:parameters())
    net:unfreeze()
    assert.is_true(net.alpha.weight.requires_grad)
    assert.is_true(net.training)
  end)
end)

describe("Module:apply", function()
  it("visits children in order, then the module", function()
    local net, seen = Net(), {}
    net:apply(function(m) seen[#seen + 1] = m end)
    assert.equal(3, #seen)
    assert.is_true(rawequal(seen[1], net.zeta) and rawequal(seen[3], net))
  end)
end)

describe("Module:num_parameters", function()
  it("counts elements", function()
    local net = Net()
    assert.equal(16, net:num_parameters())
    net.alpha:freeze()
    assert.equal(8, net:num_parameters { trainable = true })
  end)
end)

describe("Module:zero_grad", function()
  it("makes gradients nil", function()
    local net = Layer()
    net.weight.grad = lt.ones(2, 3)
    net:zero_grad()
    assert.is_nil(net.weight.grad)
  end)
end)

describe("Module:to", function()
  it("changes the dtype of floats and keeps integers, marks and flags", function()
    local net = Layer()
    net:register_buffer("count", lt.zeros(1, { dtype = "i64" }))
    net:register_buffer("mean", lt.zeros(1))
    net.bias.requires_grad = false
    net:to("f64")
    assert.same({ "f64", "f64", "i64", "f64" },
      { net.weight.dtype, net.bias.dtype, net.count.dtype, net.mean.dtype })
    assert.is_true(net.weight.requires_grad)
    assert.is_false(net.bias.requires_grad)
    assert.equal(2, #net:parameters())
  end)

  it("keeps shared parameters shared", function()
    local net = Net()
    net.alpha.weight = net.zeta.weight
    net:to("f64")
    assert.is_true(rawequal(net.alpha.weight, net.zeta.weight))
  end)

  it("leaves alone what is there already", function()
    local net = Layer()
    local weight = net.weight
    net:to("cpu"):to("f32")
    assert.is_true(rawequal(weight, net.weight))
  end)

  it("takes every name of a floating dtype, and refuses those of the others", function()
    for _, row in ipairs(lt.dtypes()) do
      for _, name in ipairs{ row.name, row.torch_name, row.method } do
        local net = Layer()
        net:register_buffer("count", lt.zeros(1, { dtype = "i64" }))
        if row.category == "floating" then
          net:to(name)
          assert.equal(row.name, net.weight.dtype)
        else
          assert.matches("to: a module goes to a device or to a floating dtype: got '" .. name,
            error_of(net.to, net, name))
        end
        assert.equal("i64", net.count.dtype)
      end
    end
  end)
end)

describe("Module:is_a", function()
  it("knows the classes above", function()
    assert.is_true(Net():is_a(Module))
    assert.is_false(Layer():is_a(Net))
    assert.is_true(class.is_a(Net(), Net))
  end)
end)

describe("properties", function()
  it("report device and dtype of the parameters", function()
    local net = Net()
    assert.equal("cpu", net.device)
    assert.equal("f64", net:to("f64").dtype)
  end)

  it("show the trainer's counters, 0 without one", function()
    local net = Net()
    assert.equal(0, net.current_epoch)
    net.trainer = { current_epoch = 3, global_step = 70 }
    assert.same({ 3, 70 }, { net.current_epoch, net.global_step })
  end)

  it("are nil when nobody knows the name", function()
    assert.is_nil(Net().nothing)
  end)
end)

describe("tostring(module)", function()
  it("draws the tree", function()
    local net = Net()
    net.blocks = { Layer(), Layer() }
    function net.alpha:extra_repr() return "3, 2" end
    assert.equal("Net(\n  (zeta): Layer()\n  (alpha): Layer(3, 2)\n  (blocks.1): Layer()\n"
      .. "  (blocks.2): Layer()\n)", tostring(net))
  end)
end)
