-- spec/nn/losses_spec.lua: losses as functions and layers, beside PyTorch and beside formulas.
local by_name = require "spec.ops.by_name"
local error_of = require "spec.error_of"
local lt = require "ltrain"
local recorded = require "spec.recorded"
local F, nn = lt.nn.functional, lt.nn

local function same(wanted, got)
  wanted = lt.tensor(wanted, { dtype = "f64" })
  local d = got:detach():flatten():sub(wanted):abs()
  d = (d / (wanted:abs() + 1)):amax():item()
  assert.is_true(d < 1e-7, ("differ by %g"):format(d))
end

-- What torch_losses.py makes.
local function made(kind, shape, place)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  local x = (lt.arange(n, { dtype = "f64" }) * 1.7 + place):sin():reshape(shape)
  if kind == "s" then return x:sign() end
  return kind == "r" and x * 2 or x * 0.45 + 0.5
end

local function input(x, place)
  if type(x) == "table" and type(x[1]) == "string" then
    return made(x[1], { table.unpack(x, 2) }, place)
  end
  return lt.tensor(x)
end

describe("losses", function()
  for k, case in ipairs(recorded "spec/nn/torch_losses.jsonl") do
    it(("%s %d has PyTorch's values and gradients"):format(case.op, k), function()
      local tensors = {}
      for i, x in ipairs(case.inputs) do tensors[i] = input(x, k - 1 + 3 * (i - 1)) end
      tensors[1]:requires_grad_(true)
      local y = lt[case.op](table.unpack(by_name(case.op, tensors, case.options)))
      same(case.result, y);
      (y * lt.arange(1, y:numel() + 1, { dtype = "f64" }):reshape(y.shape)):sum():backward()
      same(case.grad, tensors[1].grad)
    end)
  end

  it("focal: alpha (1 - p)^gamma times the entropy of the true side", function()
    local x, t = lt.tensor { 0.3, -1.2 }, lt.tensor { 1.0, 0.0 }
    local wanted = {}
    for i, side in ipairs { 0.3, 1.2 } do
      local p = 1 / (1 + math.exp(-side))
      wanted[i] = -(i == 1 and 0.25 or 0.75) * (1 - p) ^ 2 * math.log(p)
    end
    local got = F.sigmoid_focal_loss(x, t)
    assert.near(wanted[1], got[1]:item(), 1e-6)
    assert.near(wanted[2], got[2]:item(), 1e-6)
    assert.near((wanted[1] + wanted[2]) / 2, nn.FocalLoss()(x, t):item(), 1e-6)
  end)

  it("dice: of each sample and channel", function()
    local p = lt.tensor { { { 0.5, 1.0 }, { 0.0, 0.25 } } }
    local t = lt.tensor { { { 1.0, 1.0 }, { 0.0, 0.0 } } }
    local each = nn.DiceLoss { smooth = 0, reduction = "none" }(p, t)
    assert.same({ 1, 2 }, each.shape)
    assert.near(1 - 3 / 3.5, each[1][1]:item(), 1e-6)
    assert.near(1, each[1][2]:item(), 1e-6)
  end)

  it("BCE at 0 and 1 has PyTorch's limits: 100, and slopes of 1e12", function()
    local p = lt.tensor({ 0.0, 1.0, 0.5 }, { requires_grad = true })
    local loss = F.binary_cross_entropy(p, lt.tensor { 1.0, 0.0, 0.0 }, { reduction = "sum" })
    loss:backward()
    assert.near(200 + math.log(2), loss:item(), 1e-4)
    assert.near(-1e12, p.grad[1]:item(), 1e6)
    assert.near(1e12, p.grad[2]:item(), 1e6)
    assert.near(2, p.grad[3]:item(), 1e-6)
  end)
end)

describe("layers of losses", function()
  it("show what is not the default, and hold weights as buffers", function()
    local loss = nn.BCEWithLogitsLoss { pos_weight = lt.tensor { 2.0 }, reduction = "sum" }
    assert.equal("BCEWithLogitsLoss({reduction = 'sum'})", tostring(loss))
    assert.same({ 2 }, loss:state_dict().pos_weight:tolist())
    local x = lt.tensor { 1.0, -2.0 }
    local wanted = 2 * math.log(1 + math.exp(-1)) + math.log(1 + math.exp(-2))
    assert.near(wanted, loss(x, lt.tensor { 1.0, 0.0 }):item(), 1e-6)
  end)

  it("refuse shapes that would broadcast, unknown options and values", function()
    local x = lt.zeros(3, 2)
    assert.matches("huber_loss: shapes differ: %[3, 2%] and %[3%]", error_of(function()
      nn.HuberLoss()(x, lt.zeros(3))
    end))
    assert.matches("a weight of %[3%] does not broadcast to %[3, 2%]", error_of(function()
      F.binary_cross_entropy(x, x, lt.ones(3))
    end))
    assert.matches("nn.HuberLoss: .*delta", error_of(nn.HuberLoss, { delt = 1 }))
    assert.matches("'batchmean' is of kl_div alone", error_of(function()
      F.mse_loss(x, x, { reduction = "batchmean" })
    end))
    assert.matches("needs targets of %[3%], got %[2%]", error_of(function()
      F.multi_margin_loss(x, lt.tensor { 0, 1 })
    end))
    assert.matches("targets must be ids", error_of(function() F.nll_loss(x, x) end))
  end)
end)

describe("the weights of classes", function()
  it("have a gradient, with and without create_graph", function()
    local x = (lt.arange(12, { dtype = "f64" }) * 0.7):sin():reshape(4, 3):requires_grad_()
    local w = lt.tensor({ 0.5, 1.0, 2.0 }, { dtype = "f64", requires_grad = true })
    local targets = { mean = lt.tensor { 0, 2, 1, 1 }, sum = x:detach():softmax(2) }
    for reduction, target in pairs(targets) do
      local o = { label_smoothing = 0.1, reduction = reduction }
      local function loss(weight) return F.cross_entropy(x, target, weight, o) end
      assert.is_true(lt.gradcheck(loss, w))
      assert.is_true(lt.gradgradcheck(loss, w))
    end
    F.cross_entropy(x, lt.tensor { 0, 2, 1, 1 }, w):backward()
    assert.is_false(w.grad.requires_grad)
  end)
end)
