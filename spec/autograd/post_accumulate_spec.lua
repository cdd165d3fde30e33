-- spec/autograd/post_accumulate_spec.lua: hooks that run when the gradient of a leaf is complete.
local child = require "spec.cli.child"
local error_of = require "spec.error_of"
local lt = require "ltrain"

local runtime <const> = require "ltrain.c".runtime

local function leaf(n) return lt.ones({ n or 2 }, { requires_grad = true }) end

-- Calls of the hook of x so far: what its gradient was then.
local function watch(x)
  local calls = {}
  local remove = x:register_post_accumulate_grad_hook(function(p)
    assert.is_true(rawequal(x, p))
    calls[#calls + 1] = p.grad:clone():tolist()
  end)
  return calls, remove
end

describe("register_post_accumulate_grad_hook", function()
  it("calls with the leaf, once in each backward, when all contributions are in", function()
    local w = leaf()
    local calls = watch(w)
    local y = w * 2
    ;(w * 3 + y + (y * w)):sum():backward()
    assert.same({ { 9, 9 } }, calls) -- 3 + 2 + 4
    ;(w * 1.0):sum():backward() -- accumulates
    assert.same({ { 9, 9 }, { 10, 10 } }, calls)
  end)

  it("runs before the backward goes on to older nodes", function()
    local order = {}
    local first, second = leaf(), leaf()
    for name, w in pairs{ first = first, second = second } do
      w:register_post_accumulate_grad_hook(function() order[#order + 1] = name end)
    end
    local hidden = first * 2
    hidden:register_hook(function() order[#order + 1] = "hidden" end)
    ;(hidden * second):sum():backward()
    assert.same("first", order[3])
    assert.same(true, order[1] == "second" or order[2] == "second")
  end)

  it("counts a use that no gradient reaches", function()
    local w, off = leaf(), leaf()
    local calls = watch(w)
    local unused = w * off
    local mask = lt.zeros{ 2 }
    ;(w * 2 + (unused:detach() * mask)):sum():backward()
    assert.same({ { 2, 2 } }, calls)
    -- one branch below a function that gives its input no gradient
    local cut = lt.Function { name = "cut",
      forward = function(_, x) return x * 1 end,
      backward = function() return nil end,
    }
    ;(w * 2 + cut(w * 5)):sum():backward()
    assert.same({ { 2, 2 }, { 4, 4 } }, calls)
  end)

  it("is not called for a leaf without a gradient, nor by autograd.grad", function()
    local w, other = leaf(), leaf()
    local calls = watch(w)
    ;(other * 2):sum():backward()
    lt.grad((w * 2):sum(), { w })
    assert.same({}, calls)
  end)

  it("may step an optimizer and free the gradient", function()
    local w = leaf()
    w:register_post_accumulate_grad_hook(function(p)
      local _ <close> = lt.no_grad()
      p:sub_(p.grad * 0.5)
      p.grad = nil
    end)
    for _ = 1, 2 do (w * 1.0):sum():backward() end
    assert.same({ 0, 0 }, w:tolist())
    assert.is_nil(w.grad)
  end)

  it("is removed by what it returns, and several run in their order", function()
    local w, order = leaf(), {}
    local remove = w:register_post_accumulate_grad_hook(function() order[#order + 1] = 1 end)
    w:register_post_accumulate_grad_hook(function() order[#order + 1] = 2 end)
    w:sum():backward()
    remove()
    w:sum():backward()
    assert.same({ 1, 2, 2 }, order)
  end)

  it("sees the gradient that hooks on it have made", function()
    local w = leaf()
    w:register_hook(function(grad) return grad * 10 end)
    local calls = watch(w)
    w:sum():backward()
    assert.same({ { 10, 10 } }, calls)
  end)

  it("raises where the hook does, and refuses results and constants", function()
    local w = leaf()
    w:register_post_accumulate_grad_hook(function() error "boom" end)
    assert.matches("boom", error_of(function() w:sum():backward() end))
    assert.matches("only leaves accumulate gradients, this tensor is a result: use register_hook",
      error_of(function() (w * 2):register_post_accumulate_grad_hook(print) end))
    assert.matches("does not require grad",
      error_of(function() lt.ones(2):register_post_accumulate_grad_hook(print) end))
    assert.matches("needs a function, got 1",
      error_of(function() w:register_post_accumulate_grad_hook(1) end))
  end)

  it("is called in every layer of a module once, in checkpointed and shared ones too", function()
    local shared = lt.nn.Linear(3, 3)
    local net = lt.nn.Sequential(shared, lt.nn.Tanh(), shared, lt.nn.Linear(3, 1))
    local counts = {}
    for name, p in net:named_parameters() do
      p:register_post_accumulate_grad_hook(function() counts[name] = (counts[name] or 0) + 1 end)
    end
    local x = lt.randn(4, 3)
    net(x):sum():backward()
    lt.nn.utils.checkpoint(net, x):sum():backward()
    local n = 0
    for _, count in pairs(counts) do
      n = n + 1
      assert.equal(2, count)
    end
    assert.equal(4, n)
  end)

  it("runs, and goes with its leaf, where a trace has a second userdata of that", function()
    local function live()
      for _ = 1, 3 do collectgarbage() end
      return runtime.memory().live_bytes
    end
    local function runs()
      local calls, seen, x = {}, 0
      do
        local _ <close> = runtime.trace(calls)
        x = (lt.ones(8, 8) * 2):requires_grad_(true)
      end
      x:register_post_accumulate_grad_hook(function() seen = seen + 1 end)
      local y = (lt.ones(2, 8):matmul(x) ^ 2):sum()
      x = nil -- luacheck: ignore
      for i = #calls, 1, -1 do calls[i] = nil end
      live()
      y:backward()
      return seen
    end
    assert.equal(1, runs())
    local before = live()
    assert.equal(1, runs())
    assert.equal(before, live())
  end)

  -- The cache of autocast has the leaf too when the state ends. LeakSanitizer sees what stays.
  it("leaves nothing behind with a leaf that autocast has cast", function()
    local status, _, err = child.run { "-e", [[
      local lt = require "ltrain"
      local w = lt.ones({3, 3}, {requires_grad = true})
      w:register_post_accumulate_grad_hook(function() end)
      local _ <close> = lt.autocast("bf16")
      lt.matmul(lt.ones(2, 3), w):sum():backward()
    ]] }
    assert.equal(0, status, err)
  end)
end)
