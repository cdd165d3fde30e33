-- spec/autograd/hessian_spec.lua: second derivatives of whole networks, in f64: products of the
-- Hessian of the weights with a vector, and the gradient penalty of WGAN-GP.
local lt = require "ltrain"

local nn = lt.nn

-- Weights between -0.5 and 0.5 without a pattern.
local function prepared(net)
  local list = {}
  for k, p in ipairs(net:parameters()) do
    lt.no_grad(function()
      p:copy_(((lt.arange(1, p:numel() + 1) * 1.3 + k * 0.7):sin() * 0.5):reshape(p.shape))
    end)
    list[k] = p
  end
  return list
end

local function direction(x, k)
  return (lt.arange(1, x:numel() + 1):to("f64") * 2.1 + k * k):cos():reshape(x.shape)
end

local function dot(list)
  local total
  for k, x in ipairs(list) do
    local part = (x * direction(x, k)):sum()
    total = total and total + part or part
  end
  return total
end

-- The gradient along a direction, at the weights moved by h along it.
local function slope(loss, list, h)
  lt.no_grad(function() for k, p in ipairs(list) do p:add_(direction(p, k) * h) end end)
  local value = dot(lt.grad(loss(), list)):item()
  lt.no_grad(function() for k, p in ipairs(list) do p:add_(direction(p, k) * -h) end end)
  return value
end

-- v H v by two backwards against differences of one.
local function check(net, loss)
  net:to("f64")
  local list, h = prepared(net), 1e-5
  local want = (slope(loss, list, h) - slope(loss, list, -h)) / (2 * h)
  local grads = lt.grad(loss(), list, {create_graph = true})
  local product = lt.grad(dot(grads), list)
  local got = dot(product):item()
  assert.is_true(math.abs(want) > 1e-3, "a Hessian that is nearly zero")
  assert.near(want, got, 1e-6 * math.max(1, math.abs(want)))
end

local function input(...)
  local n = 1
  for _, size in ipairs{...} do n = n * size end
  return (lt.arange(n):to("f64") * 0.77):sin():reshape(...)
end

describe("the product of a Hessian and a vector", function()
  it("is that of an MLP", function()
    local net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 3))
    local x, ids = input(5, 4), lt.tensor{0, 2, 1, 1, 0}
    check(net, function() return lt.cross_entropy(net(x), ids) end)
  end)

  it("is that of a CNN with batch norm and pooling", function()
    local net = nn.Sequential(nn.Conv2d(2, 3, 3, {padding = 1}), nn.BatchNorm2d(3), nn.ReLU(),
      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 2))
    local x, target = input(4, 2, 4, 4), input(4, 2) * 2
    check(net, function() return lt.mse_loss(net(x), target) end)
  end)

  it("is that of a transformer block", function()
    local norm1, norm2 = nn.LayerNorm(4), nn.LayerNorm(4)
    local qkv, out = nn.Linear(4, 12), nn.Linear(4, 4)
    local feed = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
    local net = nn.ModuleList{norm1, norm2, qkv, out, feed}
    local x = input(2, 3, 4)
    check(net, function() -- two heads of width 2
      local parts = qkv(norm1(x)):view(2, 3, 3, 2, 2):permute(3, 1, 4, 2, 5)
      local a = lt.scaled_dot_product_attention(parts[1], parts[2], parts[3], {causal = true})
      local y = x + out(a:transpose(2, 3):reshape(2, 3, 4))
      return (y + feed(norm2(y))):square():mean()
    end)
  end)
end)

describe("a gradient penalty", function()
  it("trains a critic: its gradient by the weights is that of differences", function()
    local critic = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 8), nn.ReLU(),
      nn.Linear(8, 1))
    critic:to("f64")
    local list = prepared(critic)
    local points = input(6, 3):requires_grad_()
    local function penalty()
      local g = lt.grad(critic(points):sum(), points, {create_graph = true})
      return (g:norm{dims = 2} - 1):square():mean()
    end
    penalty():backward()
    for _, p in ipairs(list) do
      local h, d = 1e-6, direction(p, 1)
      local function at(step)
        lt.no_grad(function() p:add_(d * step) end)
        local value = penalty():item()
        lt.no_grad(function() p:add_(d * -step) end)
        return value
      end
      local got = p.grad and (p.grad * d):sum():item() or 0
      assert.near((at(h) - at(-h)) / (2 * h), got, 1e-6)
    end
  end)
end)
