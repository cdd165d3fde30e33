-- spec/parallel/experts_spec.lua: nn.MoE whose experts are divided among ranks is the layer of one
-- process on the joined batch.
local support = require "spec.dist.support"

local SETUP <const> = [[
  local nn = lt.nn
  local n = dist.world_size()
  local world = dist.split(0)
  local function sines(shape, by)
    local count = 1
    for _, size in ipairs(shape) do count = count * size end
    return lt.sin(lt.arange(count, {dtype = "f64"}) * by + by):reshape(shape)
  end
  local function close(wanted, got, what)
    same(wanted.shape, got.shape)
    if wanted:numel() == 0 then return end
    local worst = (wanted - got):abs():max():item()
    if not (worst <= 1e-11) then error(what .. " differ by " .. worst, 2) end
  end
  local function made(experts, options)
    local net = nn.MoE(4, 6, experts, options):to "f64"
    local _ <close> = lt.no_grad()
    for i, p in ipairs(net:parameters()) do p:copy_(sines(p.shape, 0.3 + 0.7 * i)) end
    return net
  end
  local function divided(net) return lt.parallelize(net, world, lt.parallel.ExpertParallel()) end
  -- rows: how many tokens each rank has
  local function compare(experts, options, rows)
    local total, first = 0, 0
    for r = 1, n do
      if r <= rank then first = first + rows[r] end
      total = total + rows[r]
    end
    local x, weights = sines({total, 4}, 1.1), sines({total, 4}, 0.9)
    local whole, mine = made(experts, options), divided(made(experts, options))
    local wanted = whole(x);
    ((wanted * weights):sum() + whole.aux_loss * total):backward()
    local own = x:narrow(1, first + 1, rows[rank + 1]):clone():requires_grad_(true)
    local got = mine(own)
    close(wanted:narrow(1, first + 1, rows[rank + 1]), got, "outputs")
    local loss = (got * weights:narrow(1, first + 1, rows[rank + 1])):sum()
    if rows[rank + 1] > 0 then loss = loss + mine.aux_loss * rows[rank + 1] end
    loss:backward()
    close(whole.router.weight.grad, dist.all_reduce(mine.router.weight.grad), "router's gradients")
    local each = experts // n
    for _, name in ipairs {"w1", "w2", "w3", "b1", "b2", "b3"} do
      if whole[name] then
        same(each, mine[name].shape[1])
        close(whole[name].grad:narrow(1, rank * each + 1, each), mine[name].grad, name)
      end
    end
    same(whole.dropped, dist.all_reduce(mine.dropped))
    return whole
  end
]]

local function ranks(n, body) return support.ranks(n, SETUP .. body) end

describe("divided experts", function()
  it("compute what one process computes on all tokens, with its gradients", function()
    ranks(2, [[
      compare(4, {}, {5, 5})
      compare(6, {top_k = 1, bias = true, activation = "gelu"}, {3, 8})
    ]])
    ranks(3, [[ compare(3, {bias = true}, {4, 1, 6}) ]])
    ranks(4, [[ compare(8, {top_k = 3}, {2, 2, 2, 2}) ]])
  end)

  it("drop the tokens that one process drops", function()
    ranks(3, [[
      local whole = compare(3, {capacity_factor = 0.8}, {4, 7, 6})
      assert(whole.dropped > 0)
    ]])
  end)

  it("may have no tokens on a rank", function()
    ranks(2, [[ compare(4, {}, {6, 0}) ]])
  end)

  it("must divide, once", function()
    ranks(2, [[
      local net = made(3)
      assert(error_of(divided, net):find("parallelize: MoE: 3 experts do not divide among 2 ranks",
        1, true))
      net = divided(made(4))
      assert(error_of(divided, net):find("is divided already", 1, true))
      assert(error_of(divided, nn.Linear(2, 2)):find("ExpertParallel is for nn.MoE: got", 1, true))
    ]])
  end)
end)
