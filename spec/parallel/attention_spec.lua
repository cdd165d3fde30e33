-- spec/parallel/attention_spec.lua: attention over a sequence that is split among ranks is that of
-- one rank, with its gradients.
local support = require "spec.dist.support"

-- q, k, v of the whole sequence, the same on all ranks; `compare` computes a loss of both.
local SETUP <const> = [[
  local n = dist.world_size()
  local P = lt.parallel
  local function numbers(shape, by)
    local count = 1
    for _, size in ipairs(shape) do count = count * size end
    return lt.sin(lt.arange(count, {dtype = "f64"}) * by + by):reshape(shape)
  end
  local function leaf(x) return lt.tensor(x, {requires_grad = true}) end
  local function close(wanted, got, what)
    same(wanted.shape, got.shape)
    local worst = (wanted - got):abs():max():item()
    if not (worst <= 1e-11) then error(what .. " differ by " .. worst, 2) end
  end
  -- The outputs and gradients of one rank on the whole, and of all on their parts.
  local function compare(attend, shapes, o, balance)
    local whole, mine = {}, {}
    local cut = {balance = balance}
    for i, shape in ipairs(shapes) do
      local x = numbers(shape, 0.3 + 0.2 * i)
      whole[i], mine[i] = leaf(x), leaf(P.split_sequence(x, #shape - 1, cut))
    end
    local own = {balance = balance}
    for key, value in pairs(o) do own[key] = value end
    if o.mask then own.mask = P.split_sequence(o.mask, o.mask.ndim, cut) end
    local wanted = lt.scaled_dot_product_attention(whole[1], whole[2], whole[3], o)
    local weights = numbers(wanted.shape, 0.7);
    (wanted * weights):sum():backward()
    local got = attend(mine[1], mine[2], mine[3], own)
    local dim = wanted.ndim - 1
    close(wanted, P.unsplit_sequence(got:detach(), dim, cut), "outputs");
    (got * P.split_sequence(weights, dim, cut)):sum():backward()
    for i = 1, 3 do
      close(whole[i].grad, P.unsplit_sequence(mine[i].grad, dim, cut), "gradients " .. i)
    end
  end
]]

local function ranks(n, body) return support.ranks(n, SETUP .. body) end

describe("a split sequence", function()
  it("is put together again, with its gradient", function()
    ranks(3, [[
      for _, balance in ipairs {true, false} do
        local x = leaf(numbers({2, 12, 3}, 0.4))
        local part = P.split_sequence(x, 2, {balance = balance})
        same({2, 4, 3}, part.shape)
        local first = balance and {0, 2, 4} or {0, 4, 8}
        close(x:narrow(2, first[rank + 1] + 1, 2), part:narrow(2, 1, 2), "chunks")
        local whole = P.unsplit_sequence(part, 2, {balance = balance})
        close(x, whole, "sequences");
        (whole * whole * (rank + 1)):sum():backward()
        close(x:detach() * 12, dist.all_reduce(x.grad), "gradients")
      end
    ]])
  end)

  it("must divide into the chunks of its ranks", function()
    ranks(2, [[
      local message = error_of(P.split_sequence, lt.zeros(3, 6))
      assert(message:find("split_sequence: 6 positions (dim 2 of [3, 6]) do not divide into 4 "
        .. "chunks for 2 ranks: pad the sequence", 1, true), message)
      assert(message:find("script.lua:", 1, true), message)
      same({3, 3}, P.split_sequence(lt.zeros(3, 6), 2, {balance = false}).shape)
      assert(error_of(P.split_sequence, 3):find("split_sequence: needs a tensor: got 3", 1, true))
    ]])
  end)
end)

describe("ring_attention", function()
  it("is attention of one rank, causal and not, in both orders", function()
    for n = 2, 4 do
      ranks(n, [[
        local shape = {2, 2, 4 * n, 3}
        for _, causal in ipairs {true, false} do
          for _, balance in ipairs {true, false} do
            compare(P.ring_attention, {shape, shape, {2, 2, 4 * n, 5}}, {causal = causal}, balance)
          end
        end
      ]])
    end
  end)

  it("has heads of keys that queries share, a scale, and 2 or 3 dims", function()
    ranks(2, [[
      compare(P.ring_attention, {{2, 4, 8, 3}, {2, 2, 8, 3}, {2, 2, 8, 3}},
        {causal = true, enable_gqa = true, scale = 0.3}, true)
      compare(P.ring_attention, {{8, 3}, {8, 3}, {8, 2}}, {causal = true}, true)
      compare(P.ring_attention, {{3, 8, 3}, {3, 8, 3}, {3, 8, 2}}, {}, true)
    ]])
  end)

  it("has masks of keys, also of rows that see nothing", function()
    ranks(3, [[
      local shape, hidden = {2, 2, 12, 3}, lt.ones(2, 1, 1, 12, {dtype = "bool"})
      hidden[{1, 1, 1, {7, 12}}] = false -- of the second sample nothing but the first key is seen
      hidden[{2, 1, 1, {2, 12}}] = false
      compare(P.ring_attention, {shape, shape, shape}, {mask = hidden}, true)
      compare(P.ring_attention, {shape, shape, shape}, {mask = hidden, causal = true}, true)
      local none = lt.zeros(2, 1, 1, 12, {dtype = "bool"})
      compare(P.ring_attention, {shape, shape, shape}, {mask = none}, true)
      local added = numbers({1, 12}, 1)
      compare(P.ring_attention, {shape, shape, shape}, {mask = added}, true)
    ]])
  end)

  it("runs in a group, beside another", function()
    ranks(4, [[
      local mesh = dist.mesh({2, 2}, {"data", "context"})
      local group = mesh:group "context"
      local q = numbers({1, 2, 8, 4}, 0.3 + mesh:rank "data")
      local cut = {group = group}
      local part = P.split_sequence(q, 3, cut)
      local y = P.ring_attention(part, part, part, {causal = true, group = group})
      close(lt.scaled_dot_product_attention(q, q, q, {causal = true}),
        P.unsplit_sequence(y, 3, cut), "outputs")
    ]])
  end)

  it("drops weights as many as it should, with the gradient of what it dropped", function()
    ranks(2, [[
      lt.seed(3)
      local shape = {1, 2, 8, 4}
      local part = {}
      for i = 1, 3 do part[i] = leaf(P.split_sequence(numbers(shape, 0.2 * i), 3)) end
      local ones = lt.ones_like(part[3])
      local o = {dropout_p = 0.5, causal = true}
      -- of values that are all 1 the outputs are the sums of the weights that were kept
      local sums = P.ring_attention(part[1]:detach(), part[2]:detach(), ones, o)
      local all = dist.all_gather(sums)
      assert((all - 1):abs():max():item() > 0.1)
      assert((all[1] - all[2]):abs():max():item() > 1e-3, "both ranks drop alike")
      local again = P.ring_attention(part[1]:detach(), part[2]:detach(), ones, o)
      assert((sums - again):abs():max():item() > 1e-3, "two calls drop alike")
      -- linear in the values: the gradient is the output of the same weights
      lt.seed(7)
      local y = P.ring_attention(part[1], part[2], part[3], o)
      local g = P.split_sequence(numbers(shape, 0.9), 3);
      (y * g):sum():backward()
      local left = dist.all_reduce((y:detach() * g):sum():item())
      local right = dist.all_reduce((part[3].grad * part[3]:detach()):sum():item())
      assert(math.abs(left - right) < 1e-11)
      local eps, numeric = 1e-6, 0
      local direction = P.split_sequence(numbers(shape, 1.7), 3)
      for _, sign in ipairs {1, -1} do
        lt.seed(7)
        local moved = part[1]:detach() + direction * (sign * eps)
        numeric = numeric + sign * dist.all_reduce((P.ring_attention(moved, part[2]:detach(),
          part[3]:detach(), o) * g):sum():item()) / (2 * eps)
      end
      local exact = dist.all_reduce((part[1].grad * direction):sum():item())
      assert(math.abs(numeric - exact) < 1e-7, numeric - exact)
    ]])
  end)

  it("is the operation on one rank", function()
    support.ranks(1, SETUP .. [[
      compare(P.ring_attention, {{2, 5, 3}, {2, 5, 3}, {2, 5, 3}}, {causal = true}, true)
    ]])
  end)

  it("has results in 16 bits under autocast, near those of f32", function()
    ranks(2, [[
      local x = leaf(P.split_sequence(numbers({1, 2, 8, 16}, 0.3), 3):to "f32")
      local wanted = P.ring_attention(x, x, x, {causal = true})
      local y
      do
        local _ <close> = lt.autocast "bf16"
        y = P.ring_attention(x, x, x, {causal = true})
      end
      same("bf16", y.dtype)
      assert((y:to "f32" - wanted):abs():max():item() < 0.02)
      y:sum():backward()
      same("f32", x.grad.dtype)
    ]])
  end)

  it("takes the memory of one rank for a sequence 8 times as long on 8 #slow", function()
    ranks(8, [[
      local runtime = require "ltrain.c".runtime
      local function peak(attend, t)
        runtime.collect_fully()
        runtime.empty_cache()
        runtime.reset_peak_memory()
        local before = runtime.memory().live_bytes
        local x = {}
        for i = 1, 3 do x[i] = lt.randn(1, 4, t, 32):requires_grad_(true) end
        attend(x[1], x[2], x[3], {causal = true}):sum():backward()
        return runtime.memory().peak_bytes - before
      end
      local one = peak(lt.scaled_dot_product_attention, 256)
      local ring = peak(P.ring_attention, 256)
      local whole = peak(lt.scaled_dot_product_attention, 8 * 256)
      assert(ring < 2 * one, ring / one)
      assert(whole > 7 * one, whole / one)
    ]])
  end)

  it("refuses what does not fit, with the shapes", function()
    ranks(2, [[
      local function refuses(words, ...)
        local message = error_of(P.ring_attention, ...)
        assert(message:find(words, 1, true), message)
        assert(message:find("script.lua:", 1, true), message)
      end
      local x = lt.zeros(2, 4, 3)
      refuses("ring_attention: causal needs as many queries as keys: got q [2, 4, 3] and k "
        .. "[2, 2, 3]", x, x:narrow(2, 1, 2), x, {causal = true})
      refuses("ring_attention: k must be a tensor [.., T / N, D] of 2 to 4 dims: got 3", x, 3, x)
      refuses("ring_attention: mask must be [.., 1, 4], of this rank's keys: got [4, 4]", x, x, x,
        {mask = lt.ones(4, 4)})
      local odd = x:narrow(2, 1, 3)
      refuses("ring_attention: 3 positions of a rank are not two chunks of the sequence (balance): "
        .. "q is [2, 3, 3]", odd, odd, odd, {causal = true})
    ]])
    assert.matches("ranks have keys of different lengths: here %[2, %d, 3%], of rank %d %[2,",
      support.fails [[dist.launch(2, function(rank)
        local x = lt.zeros(2, rank == 0 and 4 or 2, 3)
        lt.parallel.ring_attention(x, x, x, {causal = true})
      end)]])
  end)
end)

describe("ulysses_attention", function()
  it("is attention of one rank, causal and not, in both orders", function()
    for n = 2, 3 do
      ranks(n, [[
        local shape = {2, n * 2, 2 * n, 3}
        for _, causal in ipairs {true, false} do
          for _, balance in ipairs {true, false} do
            compare(P.ulysses_attention, {shape, shape, shape}, {causal = causal}, balance)
          end
        end
        local mask = lt.ones(2, 1, 1, 2 * n, {dtype = "bool"})
        mask[{1, 1, 1, {3, 2 * n}}] = false
        compare(P.ulysses_attention, {shape, {2, n, 2 * n, 3}, {2, n, 2 * n, 3}},
          {mask = mask, enable_gqa = true}, true)
      ]])
    end
  end)

  it("needs heads for each rank", function()
    ranks(2, [[
      local x = lt.zeros(1, 3, 2, 4)
      local message = error_of(P.ulysses_attention, x, x, x)
      assert(message:find("ulysses_attention: 3 heads of q do not divide among 2 ranks: "
        .. "[1, 3, 2, 4]", 1, true), message)
    ]])
  end)
end)
