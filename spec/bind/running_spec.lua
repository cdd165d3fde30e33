-- spec/bind/running_spec.lua: coroutine.resume and coroutine.wrap of owned states are ours, and do
-- what Lua's do.
require "ltrain"

describe("coroutine.wrap", function()
  it("passes values both ways", function()
    local f = coroutine.wrap(function(a, b)
      local c = coroutine.yield(a + b, nil)
      local d, e = coroutine.yield()
      return c, d, e, nil
    end)
    assert.same({ 3, nil, n = 2 }, table.pack(f(1, 2)))
    assert.same({ n = 0 }, table.pack(f("c")))
    assert.same({ "c", "d", "e", nil, n = 4 }, table.pack(f("d", "e")))
    assert.error_matches(function() f() end, "cannot resume dead coroutine")
  end)

  it("raises what was raised inside, strings with the place", function()
    local value = {}
    local ok, message = pcall(coroutine.wrap(function() error(value) end))
    assert.is_false(ok)
    assert.equal(value, message)
    ok, message = pcall(function() coroutine.wrap(function() error("boom", 0) end)() end)
    assert.is_false(ok)
    assert.matches("running_spec.lua:%d+: boom", message)
  end)

  it("closes variables of a coroutine that failed", function()
    local closed
    pcall(coroutine.wrap(function()
      local _ <close> = setmetatable({}, { __close = function() closed = true end })
      error "boom"
    end))
    assert.is_true(closed)
  end)

  it("refuses to run itself", function()
    local f
    f = coroutine.wrap(function() f() end)
    assert.error_matches(function() f() end, "cannot resume non%-suspended coroutine")
  end)

  it("refuses a thread that waits for another", function()
    local f
    f = coroutine.wrap(function() coroutine.wrap(function() f() end)() end)
    assert.error_matches(function() f() end, "cannot resume non%-suspended coroutine")
  end)

  it("wants a function", function()
    assert.error_matches(function() coroutine.wrap(3) end, "function expected")
  end)
end)

describe("coroutine.resume", function()
  it("returns what was yielded, returned or raised", function()
    local thread = coroutine.create(function(a)
      coroutine.yield(a, nil)
      error { code = 7 }
    end)
    assert.same({ true, 1, nil, n = 3 }, table.pack(coroutine.resume(thread, 1)))
    local ok, err = coroutine.resume(thread)
    assert.is_false(ok)
    assert.equal(7, err.code)
    assert.equal("dead", coroutine.status(thread))
    assert.same({ false, "cannot resume dead coroutine" }, { coroutine.resume(thread) })
  end)

  it("wants a coroutine", function()
    assert.error_matches(function() coroutine.resume(3) end, "coroutine expected")
  end)

  it("lets a coroutine yield through pcall inside it", function()
    local thread = coroutine.create(function()
      return pcall(function()
        local x = coroutine.yield "in pcall"
        error("got " .. x, 0)
      end)
    end)
    assert.same({ true, "in pcall" }, { coroutine.resume(thread) })
    assert.same({ true, false, "got it" }, { coroutine.resume(thread, "it") })
  end)
end)
