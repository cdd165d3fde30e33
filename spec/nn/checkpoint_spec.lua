-- spec/nn/checkpoint_spec.lua: nn.utils.checkpoint: less memory, the same bits.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local nn <const> = lt.nn
local checkpoint = nn.utils.checkpoint
local function plain(fn, ...) return fn(...) end

local function assert_same(a, b)
  for k, x in ipairs(a) do assert.equal(0, (x - b[k]):abs():amax():item(), k) end
end

describe("nn.utils.checkpoint", function()
  local w
  before_each(function()
    lt.seed(5)
    w = (lt.randn(6, 6) * 0.4):requires_grad_()
  end)

  local function inner(x) return x:matmul(w):tanh():sigmoid() * x end
  local function chain(call, x, n)
    for _ = 1, n do x = call(inner, x) end
    return x
  end

  it("gives the same bits, of dropout and draws too", function()
    local lin, drop, norm = nn.Linear(6, 6), nn.Dropout(0.5), nn.LayerNorm(6)
    local function block(x, o)
      return norm(drop(lin(x)) * lt.rand(x.shape) * math.random() * o.by)
    end
    local function run(call)
      lt.seed(7)
      lin:zero_grad()
      local x = lt.randn(4, 6):requires_grad_()
      local y = x * 2
      for _ = 1, 3 do y = call(block, y, { by = 1.5 }) end
      local after = lt.rand(3)
      y:square():sum():backward()
      return { y, x.grad, lin.weight.grad, lin.bias.grad, after }
    end
    assert_same(run(plain), run(checkpoint))
  end)

  it("may be nested, and differentiated twice", function()
    local function outer(x) return chain(checkpoint, x, 3) end
    local x = lt.randn(4, 6):requires_grad_()
    local function run(y)
      local first = lt.grad(y:sum(), { x, w }, { create_graph = true })
      local second = lt.grad(first[1]:square():sum(), { x, w })
      return { y:detach(), first[1]:detach(), first[2]:detach(), second[1], second[2] }
    end
    assert_same(run(chain(plain, x * 1, 3)), run(checkpoint(outer, x * 1)))
    assert_same(run(chain(plain, x, 3)), run(checkpoint(outer, x)))
  end)

  it("calls each level of a recursion once more, however deep", function()
    local calls = 0
    local function descend(call, x, n)
      calls = calls + 1
      if n == 0 then return x end
      local y = call(descend, call, x:matmul(w):tanh(), n - 1)
      return y
    end
    local x = lt.randn(2, 6):requires_grad_()
    local y = descend(checkpoint, x, 220)
    assert.equal(221, calls)
    local g = lt.grad(y:sum(), { x, w })
    assert.is_true(calls <= 2 * 221)
    assert_same(lt.grad(descend(plain, x, 220):sum(), { x, w }), g)
  end)

  it("ends the second call after the last value, also inside of pcall and a coroutine", function()
    local ended = 0
    local function f(x)
      local _ <close> = setmetatable({}, { __close = function() ended = ended + 1 end })
      local y
      pcall(function() y = x:matmul(w):tanh() end)
      y = y or x
      return coroutine.wrap(function() return y * 2 end)()
    end
    local x = lt.randn(2, 6):requires_grad_()
    local g = lt.grad(checkpoint(f, x):sum(), { x, w })
    assert.equal(2, ended)
    assert_same(lt.grad(f(x):sum(), { x, w }), g)
  end)

  it("works with lt.grad by what the function closes over, in autocast, and twice", function()
    local x = lt.randn(4, 6)
    local function run(call)
      local y = lt.autocast("bf16", function() return chain(call, x, 2) end)
      local g = lt.grad(y:sum(), w, { retain_graph = true })
      return { g, lt.grad(y:sum(), w) }
    end
    assert_same(run(plain), run(checkpoint))
  end)

  it("takes and gives several values", function()
    local a, b, c = checkpoint(function(x, n, y) return x * n, nil, y end, w, 3, "y")
    assert.same({ true, "y" }, { b == nil, c })
    assert.equal(3, (lt.grad(a:sum(), w) - 0):amax():item())
    assert.is_false(lt.no_grad(checkpoint, inner, w).requires_grad)
  end)

  it("updates the averages of batch norm once", function()
    local layer = nn.BatchNorm2d(2)
    checkpoint(layer, lt.randn(2, 2, 3, 3):requires_grad_() * 1):sum():backward()
    assert.equal(1, layer.num_batches_tracked:item())
  end)

  it("keeps less in memory", function()
    local big = lt.randn(64, 64):requires_grad_()
    local function block(x)
      for _ = 1, 6 do x = x:matmul(big):tanh() end
      return x
    end
    local x = lt.randn(64, 64)
    local function peak(call)
      local runtime = require("ltrain.c").runtime
      runtime.collect_fully()
      runtime.reset_peak_memory()
      local before = runtime.memory(x.device).live_bytes
      runtime.collect_begin()
      runtime.collect_by_batch()
      local y = x
      for _ = 1, 6 do y = call(block, y) end
      y:sum():backward()
      y = nil -- luacheck: ignore
      runtime.collect_boundary()
      runtime.collect_end()
      big.grad = nil
      runtime.collect_fully()
      local m = runtime.memory(x.device)
      assert(m.live_bytes <= before)
      return m.peak_bytes - before
    end
    peak(plain)
    local kept, dropped = peak(plain), peak(checkpoint)
    assert(dropped < 0.6 * kept, ("%d of %d bytes"):format(dropped, kept))
    local function nested(fn, ...)
      return checkpoint(function(...) return checkpoint(fn, ...) end, ...)
    end
    assert(peak(nested) <= 1.1 * dropped)
  end)

  it("names what cannot be computed again", function()
    local n, x = 0, lt.ones(2, 6):requires_grad_()
    local function fickle(how)
      return function(y)
        n = n + 1
        return n > 1 and how(y) or y:matmul(w):tanh()
      end
    end
    local function fails(fn, y)
      n = 0
      local z = checkpoint(fn, y)
      return error_of(function() z:sum():backward() end)
    end
    assert.matches("checkpoint_spec.lua:%d+: checkpoint: the function did something else when it "
      .. "was called again: it saved 0 values, and before 2",
      fails(fickle(function(y) return y end), x * 1))
    assert.matches("value 1 that it saved was f32 %[2, 6%], and is f32 %[12%]",
      fails(fickle(function(y) return y:flatten():exp() end), x * 1))
    assert.matches("checkpoint_spec.lua:%d+: no more", fails(fickle(function() error "no more" end),
      x * 1))
    local y = x * 1
    local z = checkpoint(inner, y)
    lt.no_grad(function() y:add_(1) end)
    assert.matches("checkpoint: tensor 1 that the function was given, of shape %[2, 6%], was "
      .. "written in place since by add", error_of(function() z:sum():backward() end))
    assert.matches("checkpoint: needs a function or a module, got 3", error_of(checkpoint, 3))
  end)

  it("leaves a coroutine that the function made its own values", function()
    local later
    local function fn(y)
      if not later then
        later = coroutine.wrap(function()
          coroutine.yield(lt.ones(2) * 1)
          local v = lt.full({ 2 }, 3.0):requires_grad_()
          coroutine.yield((v * 2):exp():log():sum())
          return v
        end)
        later()
      end
      return (y * 2):tanh()
    end
    local z = checkpoint(fn, w * 1)
    local sum = later()
    z:sum():backward()
    collectgarbage()
    sum:backward()
    assert.same({ 2, 2 }, later().grad:tolist())
  end)

  it("leaves the modes as they were when the function raises", function()
    assert.matches("oh", error_of(checkpoint, function() error "oh" end))
    local y = (w * 1):tanh()
    y:sum():backward()
    assert(w.grad)
  end)
end)
