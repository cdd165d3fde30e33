-- spec/nn/module_state_spec.lua: saving and loading the state of a module.

local lt = require "ltrain"
local error_of = require "spec.error_of"

local Layer = lt.Module:extend("Layer")
function Layer:init(value)
  self.weight = lt.parameter(lt.full({ 2, 3 }, value or 0.0))
  self.bias = lt.parameter(lt.full({ 2 }, value or 0.0))
end

local Net = lt.Module:extend("Net")
function Net:init(o)
  self.net = { Layer(o and o.value), Layer(o and o.value) }
end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

describe("Module:state_dict", function()
  it("names tensors as PyTorch does", function()
    assert.same({ "net.0.bias", "net.0.weight", "net.1.bias", "net.1.weight" },
      sorted_keys(Net():state_dict()))
  end)

  it("shares memory with the module, without history", function()
    local net = Net()
    local state = net:state_dict()
    assert.is_false(state["net.0.bias"].requires_grad)
    state["net.0.bias"]:fill_(4)
    assert.same({ 4, 4 }, net.net[1].bias:tolist())
  end)

  it("has a frozen parameter, and no tensor that is not marked", function()
    local net = Net():requires_grad_(false)
    net.loss = lt.zeros(1)
    assert.equal(4, #sorted_keys(net:state_dict()))
  end)

  it("has a tensor with two names once, under the first", function()
    local net = Net()
    net.net[2].weight = net.net[1].weight
    assert.same({ "net.0.bias", "net.0.weight", "net.1.bias" }, sorted_keys(net:state_dict()))
  end)
end)

describe("Module:load_state_dict", function()
  it("names what is not a tensor", function()
    local message = error_of(function()
      lt.nn.Linear(2, 1):load_state_dict { weight = 5, bias = "x" }
    end)
    assert.matches("weight is %[1, 2%], given 5, bias is %[1%], given 'x'", message)
  end)

  it("copies into the tensors that are there", function()
    local from, to = Net { value = 5.0 }, Net()
    local weight = to.net[1].weight
    to:load_state_dict(from:state_dict())
    assert.same({ { 5, 5, 5 }, { 5, 5, 5 } }, weight:tolist())
    assert.is_true(weight.requires_grad)
    assert.is_true(rawequal(weight, to.net[1].weight))
  end)

  it("converts the dtype", function()
    local net = Net()
    net:load_state_dict(Net { value = 5.0 }:to("f64"):state_dict())
    assert.equal("f32", net.net[1].bias.dtype)
    assert.same({ 5, 5 }, net.net[1].bias:tolist())
  end)

  it("lists what is missing, unexpected and mis-shaped in one error, and writes nothing", function()
    local net, state = Net(), Net { value = 5.0 }:state_dict()
    state["net.0.weight"] = nil
    state["net.0.scale"] = lt.zeros(1)
    state["net.1.bias"] = lt.zeros(4)
    local message = error_of(function() net:load_state_dict(state) end)
    assert.matches("module_state_spec%.lua:%d+: load_state_dict: the tensors do not fit Net\n"
      .. "  missing: net%.0%.weight\n  unexpected: net%.0%.scale\n"
      .. "  shapes: net%.1%.bias is %[2%], given %[4%]$", message)
    assert.same({ 0, 0 }, net.net[1].bias:tolist())
  end)

  it("reports what is missing and unexpected instead, with strict = false", function()
    local net, state = Net(), Net { value = 5.0 }:state_dict()
    state["net.0.weight"], state.extra = nil, lt.zeros(1)
    local result = net:load_state_dict(state, { strict = false })
    assert.same({ missing = { "net.0.weight" }, unexpected = { "extra" } }, result)
    assert.same({ 5, 5 }, net.net[1].bias:tolist())
  end)

  it("does not load a wrong shape with strict = false either", function()
    local state = Net():state_dict()
    state["net.0.bias"] = lt.zeros(3)
    assert.matches("shapes: net%.0%.bias is %[2%], given %[3%]",
      error_of(Net().load_state_dict, Net(), state, { strict = false }))
  end)

  it("asks strict_loading of the module", function()
    local net = Net()
    net.strict_loading = false
    assert.same(4, #net:load_state_dict({}).missing)
  end)

  it("takes every name that a shared tensor has", function()
    local net = Net()
    net.net[2].weight = net.net[1].weight
    local state = Net { value = 5.0 }:state_dict()
    assert.same({ missing = {}, unexpected = {} }, net:load_state_dict(state))
    state["net.0.weight"] = nil
    assert.same({}, net:load_state_dict(state).missing)
  end)

  it("takes the names that a shared module gives", function()
    local net = Net()
    net.net[2] = net.net[1]
    assert.same({ missing = {}, unexpected = {} },
      net:load_state_dict(Net { value = 5.0 }:state_dict()))
  end)

  it("says how the checkpoints of ltrain and of Lightning are read", function()
    local state = { epoch = lt.zeros(1) }
    for name, tensor in pairs(Net():state_dict()) do state["model." .. name] = tensor end
    assert.matches("do not fit Net\n  this is a checkpoint of ltrain: "
      .. "Net:load_from_checkpoint%(file%) reads it", error_of(Net().load_state_dict, Net(), state))
    assert.matches("this is a checkpoint: pass its field state_dict",
      error_of(Net().load_state_dict, Net(), { epoch = 3, state_dict = Net():state_dict() }))
  end)

  it("refuses what is not a table", function()
    assert.matches("load_state_dict: the state must be a table: got 'file'",
      error_of(Net().load_state_dict, Net(), "file"))
  end)
end)

describe("Module:save_hyperparameters", function()
  it("keeps a copy in hparams", function()
    local net, options = Net(), { width = 3, sizes = { 1, 2 } }
    net:save_hyperparameters(options)
    options.sizes[1] = 7
    assert.same({ width = 3, sizes = { 1, 2 } }, net.hparams)
  end)

  it("needs to know what to keep; init without options keeps nothing", function()
    local net = Net()
    assert.matches("save_hyperparameters: pass what to save: self:save_hyperparameters%(o%)",
      error_of(net.save_hyperparameters, net))
    net:save_hyperparameters(nil)
    assert.same({}, net.hparams)
  end)

  it("keeps what the init that calls it was given", function()
    local kept
    local function made(init, ...)
      local Own = lt.Module:extend "Own"
      Own.init = init
      kept = Own(...).hparams
      return kept
    end
    assert.same({ width = 3, lr = 0.1 }, made(function(self, width, lr) -- luacheck: ignore
      width = width or 3 -- luacheck: ignore
      self:save_hyperparameters()
    end, nil, 0.1))
    local function of_table(self, o) self:save_hyperparameters() end -- luacheck: ignore
    assert.same({ width = 3 }, made(of_table, { width = 3 }))
    assert.same({}, made(of_table))
    assert.same({ width = 3 }, made(function(self, width, net) -- luacheck: ignore
      self:save_hyperparameters { ignore = { "net" } }
    end, 3, lt.nn.ReLU()))
    assert.same({ lr = 0.1 }, made(function(self, width, lr) -- luacheck: ignore
      self:save_hyperparameters("lr", { logger = false })
    end, 3, 0.1))
    assert.matches("save_hyperparameters: net cannot be saved: it is an object of class ReLU; "
      .. "leave it out with {ignore = {'net'}}", error_of(made,
        function(self, net) self:save_hyperparameters() end, lt.nn.ReLU()), 1, true)
  end)

  it("leaves out what is to be ignored", function()
    local net = Net()
    net:save_hyperparameters({ width = 3, data = print }, { ignore = { "data" } })
    assert.same({ width = 3 }, net.hparams)
  end)

  it("refuses what a file cannot hold, and says how to leave it out", function()
    local net = Net()
    assert.matches("save_hyperparameters: data%.x cannot be saved: it is a function; "
      .. "leave it out with {ignore = {'data'}}",
      error_of(net.save_hyperparameters, net, { data = { x = print } }))
  end)
end)
