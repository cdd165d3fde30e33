-- spec/nn/moe_spec.lua: nn.MoE: tokens go through the experts that the router chooses for them.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn

local F64 <const> = { dtype = "f64" }

local function sines(shape, by)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return (lt.arange(n, F64) * by + by):sin():reshape(shape)
end

local function made(dim, hidden, experts, options)
  local net = nn.MoE(dim, hidden, experts, options):to "f64"
  local _ <close> = lt.no_grad()
  for i, p in ipairs(net:parameters()) do p:copy_(sines(p.shape, 0.3 + 0.7 * i)) end
  return net
end

-- The layer's formula, one token and one expert after the other: an independent loop. `taken`: how
-- many tokens an expert takes.
local function by_hand(net, x, taken)
  local n, e, k = x.shape[1], net.num_experts, net.top_k
  local p = x:matmul(net.router.weight:transpose(1, 2)):softmax(-1)
  local weights, choices = p:topk(k, -1)
  local load, rows = {}, {}
  for t = 1, n do rows[t] = x[t] * 0 end
  for j = 1, k do
    for t = 1, n do
      local i = choices[t][j]:item() + 1
      load[i] = (load[i] or 0) + 1
      if load[i] <= (taken or n * k) then
        local function layer(y, w, b) return b and y:matmul(w[i]) + b[i] or y:matmul(w[i]) end
        local h = layer(x[t], net.w1, net.b1)
        h = net.w3 and h:silu() * layer(x[t], net.w3, net.b3) or h:gelu()
        local w = net.normalize and weights[t][j] / weights[t]:sum() or weights[t][j]
        rows[t] = rows[t] + layer(h, net.w2, net.b2) * w
      end
    end
  end
  local aux = 0
  for i = 1, e do aux = aux + (load[i] or 0) / (n * k) * p:select(2, i):mean():item() * e end
  return lt.stack(rows), aux
end

local function check(net, x, taken)
  local y = net(x)
  local wanted, aux = by_hand(net, x, taken)
  assert.is_true((y - wanted):abs():max():item() < 1e-12)
  assert.near(aux, net.aux_loss:item(), 1e-12)
  local got, expected = {}, {}
  local weights = sines(y.shape, 0.9);
  (y * weights):sum():backward()
  for i, p in ipairs(net:parameters()) do got[i], p.grad = p.grad, nil end
  (wanted * weights):sum():backward()
  for i, p in ipairs(net:parameters()) do expected[i], p.grad = p.grad, nil end
  for i in ipairs(net:parameters()) do
    assert.is_true((got[i] - expected[i]):abs():max():item() < 1e-11)
  end
end

describe("nn.MoE", function()
  it("is the weighted sum of each token's experts, with its gradients", function()
    local x = sines({ 9, 4 }, 1.1)
    check(made(4, 6, 5), x)
    check(made(4, 6, 5, { activation = "gelu", bias = true, top_k = 1 }), x)
    check(made(4, 6, 3, { bias = true, top_k = 3, normalize = false }), x)
  end)

  it("drops what is above the capacity, first choices last", function()
    local x = sines({ 12, 4 }, 1.1)
    local net = made(4, 6, 4, { capacity_factor = 0.75 })
    check(net, x, math.ceil(0.75 * 12 * 2 / 4))
    assert.is_true(net.dropped > 0)
    local whole = made(4, 6, 4)
    whole(x)
    assert.equal(0, whole.dropped)
    assert.near(1, whole.expert_load:sum():item(), 1e-12)
  end)

  it("gives zeros for tokens that all of their experts dropped", function()
    local net = made(4, 6, 2, { top_k = 1, capacity_factor = 0.2 })
    local y = net(lt.ones(10, 4, F64)) -- all go to one expert, which takes the first
    assert.is_true(y[1]:abs():max():item() > 0)
    assert.equal(0, y:narrow(1, 2, 9):abs():max():item())
    assert.equal(9, net.dropped)
  end)

  it("takes leading dims, no tokens at all, and 16 bits by autocast", function()
    local net = made(4, 6, 5)
    local x = sines({ 2, 3, 4 }, 0.8)
    local y = net(x)
    assert.same({ 2, 3, 4 }, y.shape)
    assert.is_true((y:reshape(6, 4) - net(x:reshape(6, 4))):abs():max():item() == 0)
    assert.same({ 0, 4 }, net(lt.zeros(0, 4, F64)).shape)
    local half = nn.MoE(8, 16, 4)
    local z = lt.ones(3, 8):requires_grad_(true)
    do
      local _ <close> = lt.autocast "bf16"
      half(z):sum():backward()
    end
    assert.equal("f32", z.grad.dtype)
  end)

  it("has a balanced load at an auxiliary loss of 1", function()
    local net = made(4, 6, 4, { top_k = 1 })
    local _ <close> = lt.no_grad()
    net.router.weight:copy_(lt.eye(4, F64))
    net(lt.eye(4, F64):repeat_interleave(2, { dim = 1 }))
    assert.near(1, net.aux_loss:item(), 1e-12)
    assert.same({ 0.25, 0.25, 0.25, 0.25 }, net.expert_load:tolist())
    assert.near(math.log(math.exp(1) + 3) ^ 2, net.z_loss:item(), 1e-12)
  end)

  it("refuses wrong widths and too many choices", function()
    assert.matches("%.lua:%d+: nn.MoE: top_k = 3 is more than the 2 experts",
      error_of(nn.MoE, 4, 4, 2, { top_k = 3 }))
    assert.matches("nn.MoE: x must be %[.., 4%]: got %[2, 3%]",
      error_of(nn.MoE(4, 4, 2), lt.zeros(2, 3)))
  end)
end)
