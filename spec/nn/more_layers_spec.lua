-- spec/nn/more_layers_spec.lua: batch norm and dropout in any dims, containers, products.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn

local F64 <const> = { dtype = "f64" }

local function values(...)
  local n, shape = 1, { ... }
  for _, size in ipairs(shape) do n = n * size end
  return (lt.arange(n, F64) * 0.7):sin():reshape(shape)
end

local function same(a, b) assert.is_true((a - b):abs():amax():item() < 1e-12) end

describe("batch norm", function()
  it("in one and three dims is that of two, in other shapes", function()
    local two = nn.BatchNorm2d(3):to "f64"
    local x = values(4, 3, 2, 6)
    local wanted, evaluated = two(x), two:eval()(x)
    for name, shape in pairs { BatchNorm1d = { 4, 3, 12 }, BatchNorm3d = { 4, 3, 2, 2, 3 },
      SyncBatchNorm = { 4, 3, 12 } } do
      local norm = nn[name](3):to "f64"
      same(wanted, norm(x:reshape(shape)):reshape(x.shape))
      same(two.running_var, norm.running_var)
      same(evaluated, norm:eval()(x:reshape(shape)):reshape(x.shape))
    end
    local rows = nn.BatchNorm1d(3):to "f64"
    same(rows(values(4, 3)), rows(values(4, 3):reshape(4, 3, 1)):reshape(4, 3))
  end)

  it("refuses other shapes", function()
    assert.matches("nn.BatchNorm1d: x must be %[B, C%] or %[B, C, L%]: got .*%[2, 3, 4, 5%]",
      error_of(function() nn.BatchNorm1d(3)(lt.zeros(2, 3, 4, 5)) end))
    assert.matches("nn.BatchNorm3d: x must be %[B, C, D, H, W%]", error_of(function()
      nn.BatchNorm3d(3)(lt.zeros(2, 3, 4, 5))
    end))
    assert.matches("nn.BatchNorm3d: unknown option 'mometum'", error_of(nn.BatchNorm3d, 3,
      { mometum = 1 }))
  end)
end)

describe("dropout of channels", function()
  it("keeps or drops each whole, in training alone", function()
    lt.seed_everything(7)
    for name, shape in pairs { Dropout1d = { 8, 16, 4 }, Dropout2d = { 8, 16, 2, 2 },
      Dropout3d = { 8, 16, 2, 2, 1 } } do
      local layer, x = nn[name](0.25), lt.ones(shape)
      local channels = layer(x):reshape(8 * 16, 4)
      assert.is_true((channels:amax(2) - channels:amin(2)):abs():amax():item() == 0)
      local dropped = channels:narrow(2, 1, 1):eq(0):sum():item()
      assert.is_true(dropped > 10 and dropped < 60, tostring(dropped))
      assert.near(4 / 3, channels:amax():item(), 1e-6)
      assert.equal(x, layer:eval()(x))
    end
    assert.matches("nn.Dropout2d: x must be %[B, C, H, W%]", error_of(function()
      nn.Dropout2d()(lt.zeros(2, 3))
    end))
    assert.matches("nn.Dropout2d: p must be at most 1", error_of(nn.Dropout2d, 2))
  end)
end)

describe("shapes and products", function()
  it("Unflatten splits a dim", function()
    assert.same({ 2, 3, 4, 5 }, nn.Unflatten(2, { 3, -1 })(lt.zeros(2, 12, 5)).shape)
    assert.same({ 2, 12, 1, 5 }, nn.Unflatten(-1, { 1, 5 })(lt.zeros(2, 12, 5)).shape)
    assert.matches("dim 4 is out of range", error_of(function()
      nn.Unflatten(4, { 1 })(lt.zeros(2, 2))
    end))
  end)

  it("Bilinear is x1^T W x2 + b of each output", function()
    local layer = nn.Bilinear(2, 3, 2):to "f64"
    local a, b = values(4, 2), values(4, 3) + 0.5
    local y = layer(a, b)
    for o = 1, 2 do
      local wanted = (a:matmul(layer.weight[o]) * b):sum(2) + layer.bias[o]
      same(wanted, y:select(2, o))
    end
    assert.same({ 5, 4, 2 }, layer(lt.zeros(5, 4, 2, F64), lt.zeros(5, 4, 3, F64)).shape)
  end)
end)

describe("containers", function()
  it("ModuleDict holds modules by name", function()
    local dict = nn.ModuleDict { conv = nn.Conv2d(1, 2, 3), act = nn.ReLU() }
    assert.same({ "conv.weight", "conv.bias" }, dict:parameters().names)
    dict.head = nn.Linear(2, 2)
    assert.equal(4, #dict:parameters())
    assert.matches("must be a module under a name", error_of(nn.ModuleDict, { nn.ReLU() }))
    assert.matches("%['x'%] must be a module under a name: got 3",
      error_of(nn.ModuleDict, { x = 3 }))
  end)

  it("ParameterList holds parameters", function()
    local net = lt.Module.adopt { list = nn.ParameterList { lt.zeros(3), lt.ones(2) } }
    assert.same({ "list.0", "list.1" }, net:parameters().names)
    assert.is_true(net.list[2].requires_grad)
    assert.matches("element 1 must be a tensor", error_of(nn.ParameterList, { 3 }))
  end)

  it("ParameterDict holds parameters by name", function()
    local net = lt.Module.adopt { dict = nn.ParameterDict { b = lt.zeros(3), a = lt.ones(2) } }
    assert.same({ "dict.a", "dict.b" }, net:parameters().names)
    assert.is_true(net.dict.b.requires_grad)
    assert.matches("%['x'%] must be a tensor under a name: got 3",
      error_of(nn.ParameterDict, { x = 3 }))
  end)

  it("deepcopy shares what the module shares, and nothing with it", function()
    local net = lt.Module.adopt { a = nn.Linear(2, 2), note = "x" }
    net.b = net.a
    net.a.weight:requires_grad_(false)
    local copy = nn.deepcopy(net)
    assert.equal(copy.a, copy.b)
    assert.not_equal(net.a.weight, copy.a.weight)
    same(net.a.weight, copy.a.weight)
    assert.is_false(copy.a.weight.requires_grad)
    assert.is_true(copy.a.bias.requires_grad)
    assert.same(net:parameters().names, copy:parameters().names)
    assert.equal("x", copy.note)
    assert.matches("needs a module", error_of(nn.deepcopy, {}))
  end)
end)
