-- spec/nn/module_members_spec.lua: methods of modules with options by place or by name, and parts
-- that are set by name.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local Net = lt.Module:extend("Net")
function Net:init()
  self.body = lt.nn.Sequential(lt.nn.Linear(2, 3), lt.nn.ReLU())
  self.scale = lt.parameter(lt.ones(1))
  self:register_buffer("count", lt.zeros(1), false)
end
function Net:forward(x) return self.body(x) * self.scale end

local function names(iterator)
  local list = {}
  for name in iterator do list[#list + 1] = name end
  return table.concat(list, " ")
end

describe("options of a module's methods", function()
  it("stand by place or by name", function()
    local net = Net()
    assert.equal("net.scale", names(net:named_parameters("net", false)))
    assert.equal("net.scale", names(net:named_parameters { prefix = "net", recurse = false }))
    assert.equal("net.count", names(net:named_buffers("net")))
    assert.equal(1, #net:parameters(false))
    assert.equal(3, #net:parameters { recurse = true })
    assert.equal(3, #net:parameters())
    assert.equal(1, #net:buffers(false))
    assert.is_nil(net:state_dict().count) -- persistent was false
    assert.same({ missing = { "body.0.weight", "body.0.bias" }, unexpected = {} },
      net:load_state_dict({ scale = lt.ones(1) }, false))
  end)

  it("beyond those that have a place are one argument too many", function()
    local net = Net()
    assert.matches("module_members_spec%.lua:%d+: parameters: one argument too many: 2",
      error_of(function() net:parameters(true, 2) end))
    assert.matches("named_parameters: prefix is given by place and by name",
      error_of(function() net:named_parameters("a", { prefix = "b" }) end))
    assert.matches("parameters: recurse must be true or false: got 'all'",
      error_of(function() net:parameters "all" end))
    assert.matches("parameters: call it with a colon",
      error_of(function() net.parameters() end))
  end)

  it("move it to a device and a dtype", function()
    assert.equal("f64", Net():to("cpu", "f64").dtype)
    assert.equal("f64", Net():to { dtype = "f64" }.dtype)
    assert.equal("bf16 f64 f16 f32 f64", table.concat({ Net():bfloat16().dtype,
      Net():double().dtype, Net():half().dtype, Net():double():float().dtype,
      Net():type("f64").dtype }, " "))
    assert.matches("to: a module goes to a device or to a floating dtype: got 'i64'",
      error_of(function() Net():to("cpu", "i64") end))
  end)

  it("leave the names of dtypes to fields", function()
    local net = Net()
    net.half, net.type = 3, "small"
    assert.equal(3, net.half)
    assert.equal("small", net.type)
  end)

  it("set gradients to zero", function()
    local net = Net()
    net(lt.ones(1, 2)):sum():backward()
    net:zero_grad(false)
    assert.equal(0, net.scale.grad:item())
    net:zero_grad()
    assert.is_nil(net.scale.grad)
  end)

  it("give the state dict a prefix, or the parameters themselves", function()
    local net = Net()
    assert.equal(1, net:state_dict { prefix = "net." }["net.scale"]:item())
    assert.is_true(rawequal(net.scale, net:state_dict { keep_vars = true }.scale))
  end)
end)

describe("a part that is set by name", function()
  it("is a field", function()
    local net, layer = Net(), lt.nn.Linear(3, 1)
    net:add_module("head", layer)
    net:register_module("tail", lt.nn.ReLU())
    net:register_parameter("shift", lt.parameter(lt.zeros(1)))
    net:register_parameter("absent", nil)
    assert.is_true(rawequal(layer, net.head))
    assert.equal("scale body.0.weight body.0.bias head.weight head.bias",
      (names(net:named_parameters()):gsub("shift ", "")))
    assert.matches("register_parameter: 'a' must be a parameter, lt.parameter%(x%): got a tensor",
      error_of(function() net:register_parameter("a", lt.zeros(1)) end))
    assert.matches("add_module: the name must be a string without dots: got 'a.b'",
      error_of(function() net:add_module("a.b", layer) end))
    assert.matches("add_module: a module is needed: got 1",
      error_of(function() net:add_module("a", 1) end))
  end)

  it("replaces a submodule at any depth", function()
    local net = Net()
    net:set_submodule("body.1", lt.nn.Tanh())
    net:set_submodule("body.2", lt.nn.Tanh())
    net:set_submodule("head", lt.nn.ReLU())
    assert.equal("Tanh(), Tanh(), ReLU()",
      ("%s, %s, %s"):format(net.body[2], net.body[3], net.head))
  end)
end)

describe("a module in a fit", function()
  it("takes Lightning's options by place or by name", function()
    local net, seen = lt.nn.Linear(1, 1), {}
    net.automatic_optimization = false
    function net:training_step(batch)
      local optimizer = self:optimizers(false)
      local loss = self(batch):sum()
      self:manual_backward(loss * 100)
      self:clip_gradients(optimizer, { gradient_clip_val = 0.5, gradient_clip_algorithm = "value" })
      seen.grad = self.weight.grad:item()
      optimizer:step()
      self:log("a", 1, true)
      self:log_dict({ b = 2 }, true, false)
      self.all_gathered = self:all_gather(lt.ones(2), nil, true).shape
      seen.steps = self.trainer.estimated_stepping_batches
    end
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
    local trainer = lt.Trainer { max_epochs = 1, logger = false, enable_progress_bar = false,
      enable_checkpointing = false, enable_model_summary = false }
    trainer:fit(net, { lt.ones(1, 1), lt.ones(1, 1) })
    assert.equal(0.5, seen.grad)
    assert.equal(2, seen.steps)
    assert.same({ 1, 2 }, net.all_gathered)
    assert.same({ a = 1, b = 2 }, trainer.progress_bar_metrics)
    assert.is_nil(trainer.logged_metrics.b)
  end)

  it("writes its ONNX file", function()
    local path = os.tmpname()
    local net = lt.nn.Linear(2, 1)
    assert.matches("to_onnx: an input is needed", error_of(function() net:to_onnx(path) end))
    net.example_input_array = lt.ones(1, 2)
    net:to_onnx(path)
    local file <close> = assert(io.open(path, "rb"))
    assert.matches("weight", file:read "a")
    os.remove(path)
  end)
end)
