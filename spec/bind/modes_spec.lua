-- spec/bind/modes_spec.lua: no_grad and autocast as scopes, and whose they are.
local c = require "ltrain.c"
local error_of = require "spec.error_of"
local lt = require "ltrain"
local raises = require "spec.bind.raises"

local x = lt.ones(2, 2, {requires_grad = true})

describe("a scope with a function", function()
  it("takes functions and modules, and refuses tensors and all else", function()
    local pair = lt.ones(2)
    for name, open in pairs {
      no_grad = lt.no_grad, enable_grad = lt.enable_grad, allow_update = lt.allow_update,
      detect_anomaly = lt.detect_anomaly,
      set_grad_enabled = function(f) return lt.set_grad_enabled(true, f) end,
      autocast = function(f) return lt.autocast("bf16", f) end,
    } do
      for shown, value in pairs { ["a tensor"] = pair, ["5"] = 5, ["false"] = false, table = {} } do
        assert.matches(name .. ": needs a function, got " .. shown, error_of(open, value), 1, true)
      end
      assert.is_true(lt.is_grad_enabled())
    end
    assert.same({ 1 }, lt.no_grad(lt.nn.Linear(2, 1), pair).shape)
  end)
end)

describe("lt.no_grad", function()
  it("is a scope that ends with its block", function()
    do
      local _ <close> = lt.no_grad()
      assert.is_false(lt.is_grad_enabled())
      assert.is_false((x * 2).requires_grad)
      do
        local _ <close> = lt.enable_grad()
        assert.is_true((x * 2).requires_grad)
      end
      assert.is_false(lt.is_grad_enabled())
    end
    assert.is_true(lt.is_grad_enabled())
  end)

  it("takes a function and hands on what goes in and out", function()
    local a, b = lt.no_grad(function(p, q) return p + q, lt.is_grad_enabled() end, 3, 4)
    assert.equal(7, a)
    assert.is_false(b)
    assert.is_true(lt.is_grad_enabled())
  end)

  it("ends with an error, too", function()
    assert.is_false(pcall(lt.no_grad, function() error("x") end))
    assert.is_true(lt.is_grad_enabled())
    pcall(function()
      local _ <close> = lt.no_grad()
      error("x")
    end)
    assert.is_true(lt.is_grad_enabled())
  end)

  it("may be yielded through", function()
    local co = coroutine.wrap(function()
      lt.no_grad(function()
        coroutine.yield(lt.is_grad_enabled())
        coroutine.yield(lt.is_grad_enabled())
      end)
      coroutine.yield(lt.is_grad_enabled())
    end)
    assert.is_false(co())
    assert.is_true(lt.is_grad_enabled())
    assert.is_false(co())
    assert.is_true(co())
  end)

  it("belongs to the coroutine that opened it", function()
    local function loader()
      local _ <close> = lt.no_grad()
      for i = 1, 3 do coroutine.yield(lt.ones(2) * i) end
    end
    for batch in coroutine.wrap(loader) do
      assert.is_true(lt.is_grad_enabled())
      assert.is_true((x * batch).requires_grad)
    end
    assert.is_true(lt.is_grad_enabled())
  end)

  it("of an abandoned coroutine does no harm", function()
    do
      local co = coroutine.create(function()
        local _ <close> = lt.no_grad()
        coroutine.yield()
      end)
      coroutine.resume(co)
    end
    assert.is_true(lt.is_grad_enabled())
    collectgarbage()
    assert.is_true((x * 2).requires_grad)
    local other = coroutine.create(function()
      local _ <close> = lt.no_grad()
      coroutine.yield()
    end)
    coroutine.resume(other)
    coroutine.close(other)
    assert.is_true(lt.is_grad_enabled())
  end)

  it("of the main thread holds in coroutines that begin inside", function()
    lt.no_grad(function()
      assert.is_false(coroutine.wrap(function() return lt.is_grad_enabled() end)())
    end)
  end)

  it("needs a function, if anything", function()
    raises("no_grad: needs a function, got 3", function() lt.no_grad(3) end)
    raises("autocast: needs a function, got table", function() lt.autocast("bf16", {}) end)
    raises("detect_anomaly: needs a function, got 1", function() lt.detect_anomaly(1) end)
  end)
end)

describe("lt.autocast", function()
  it("runs products in bf16 and keeps the rest", function()
    do
      local _ <close> = lt.autocast("bf16")
      assert.equal("bf16", lt.is_autocast_enabled())
      assert.equal("bf16", x:matmul(x).dtype)
      assert.equal("f32", (x + x).dtype)
      lt.autocast(false, function() assert.equal("f32", x:matmul(x).dtype) end)
    end
    assert.is_false(lt.is_autocast_enabled())
    assert.equal("f32", x:matmul(x).dtype)
  end)

  it("takes no other dtype", function()
    raises("autocast: must be \"bf16\", \"f16\" or false, got f64", function()
      lt.autocast("f64")
    end)
  end)
end)

describe("lt.set_float32_matmul_precision", function()
  it("keeps what it is told, and changes nothing on the CPU", function()
    assert.equal("highest", lt.get_float32_matmul_precision())
    local y = x:matmul(x):tolist()
    for _, precision in ipairs { "high", "medium" } do
      lt.set_float32_matmul_precision(precision)
      assert.equal(precision, lt.get_float32_matmul_precision())
      assert.same(y, x:matmul(x):tolist())
    end
    lt.set_float32_matmul_precision "highest"
  end)

  it("takes no other word", function()
    for word, shown in pairs { low = "low", [false] = "false" } do
      raises("set_float32_matmul_precision: must be \"highest\", \"high\" or \"medium\", got "
        .. shown, function() lt.set_float32_matmul_precision(word) end)
    end
    assert.equal("highest", lt.get_float32_matmul_precision())
  end)
end)

describe("a trace", function()
  local function opened()
    local list = {}
    return list, c.runtime.trace(list)
  end

  local function close(scope) local _ <close> = scope end

  it("stays closed when a scope ends that was opened in it", function()
    local list, trace = opened()
    local scope = lt.no_grad()
    close(trace)
    close(scope)
    local _ = x * 2
    assert.same({}, list)
  end)

  it("is left by coroutines that were made in it", function()
    local list, trace = opened()
    local run = coroutine.wrap(function()
      while true do coroutine.yield(x * 2) end
    end)
    run()
    close(trace)
    run()
    assert.equal(1, #list)
  end)

  it("stays open while another that was opened in it is", function()
    local list, outer = opened()
    local _, inner = opened()
    coroutine.wrap(function() close(outer) end)()
    close(inner)
    local _ = x * 2
    assert.equal(1, #list)
    close(outer)
    local _ = x * 2
    assert.equal(1, #list)
  end)
end)
