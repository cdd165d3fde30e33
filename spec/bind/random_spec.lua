-- spec/bind/random_spec.lua: seeds, positions of draws, and math.random.
local lt = require "ltrain"

local runtime = require("ltrain.c").runtime

describe("lt.seed", function()
  it("repeats all draws", function()
    assert.equal(5, lt.seed(5))
    local a, m = lt.rand(7):tolist(), math.random(1000000)
    lt.seed(5)
    assert.same(a, lt.rand(7):tolist())
    assert.equal(m, math.random(1000000))
    lt.seed_everything(6)
    assert.not_same(a, lt.rand(7):tolist())
  end)

  it("draws one when none is given", function()
    assert.not_equal(lt.seed(), lt.seed())
    assert.equal("integer", math.type(lt.seed()))
  end)

  it("is reported as drawn once, and only when it was not given", function()
    local drawn = lt.seed()
    assert.equal(drawn, runtime.drawn_seed())
    assert.is_nil(runtime.drawn_seed())
    lt.seed()
    lt.seed(7)
    assert.is_nil(runtime.drawn_seed())
  end)

  it("must be an integer", function()
    local ok, message = pcall(lt.seed, 1.5)
    assert.is_false(ok)
    assert.matches("seed: must be an integer, got 1%.5", message)
  end)
end)

describe("the position of draws", function()
  it("is a function of stream and batch, not of what was drawn before", function()
    lt.seed(1)
    runtime.rng_set {stream = 1, batch = 7}
    local a = lt.rand(3):tolist()
    local b = lt.rand(3):tolist()
    lt.rand(100)
    runtime.rng_set {batch = 7}
    assert.same(a, lt.rand(3):tolist())
    assert.same(b, lt.rand(3):tolist())
    runtime.rng_set {batch = 8}
    assert.not_same(a, lt.rand(3):tolist())
    runtime.rng_set {stream = 2, batch = 7}
    assert.not_same(a, lt.rand(3):tolist())
    runtime.rng_set {stream = 0}
  end)

  it("outside of loops continues where it was left", function()
    lt.seed(1)
    lt.rand(3)
    local want = lt.rand(3):tolist()
    lt.seed(1)
    lt.rand(3)
    runtime.rng_set {stream = 1, batch = 0}
    lt.rand(3)
    runtime.rng_set {stream = 0}
    assert.same(want, lt.rand(3):tolist())
  end)

  it("can be saved and restored, math.random's too", function()
    lt.seed(3)
    lt.rand(3)
    math.random()
    local state = runtime.rng_state()
    local a, m = lt.rand(3):tolist(), math.random()
    lt.seed(99)
    runtime.rng_restore(state)
    assert.same(a, lt.rand(3):tolist())
    assert.equal(m, math.random())
  end)

  it("moves on with a script's own optimizer steps", function()
    lt.seed(1)
    runtime.batch_done()
    local a = lt.rand(3):tolist()
    runtime.batch_done()
    assert.not_same(a, lt.rand(3):tolist())
    lt.seed(1)
    lt.rand(50)
    runtime.batch_done()
    assert.same(a, lt.rand(3):tolist())
  end)
end)

describe("math.random", function()
  it("has stock Lua's ranges", function()
    lt.seed(1)
    local low, high = 1, 0
    for _ = 1, 2000 do
      local x = math.random()
      assert.is_true(x >= 0 and x < 1)
      local k = math.random(6)
      assert.equal("integer", math.type(k))
      low, high = math.min(low, k), math.max(high, k)
      local j = math.random(-2, 2)
      assert.is_true(j >= -2 and j <= 2)
    end
    assert.equal(1, low)
    assert.equal(6, high)
    assert.equal(7, math.random(7, 7))
    assert.equal("integer", math.type(math.random(0)))
    assert.equal("integer", math.type(math.random(math.mininteger, math.maxinteger)))
  end)

  it("spreads evenly", function()
    lt.seed(2)
    local count = {0, 0, 0, 0, 0}
    for _ = 1, 10000 do
      local k = math.random(5)
      count[k] = count[k] + 1
    end
    for k = 1, 5 do assert.near(2000, count[k], 200) end -- 5 standard deviations
  end)

  it("refuses what stock Lua refuses", function()
    assert.has_error(function() math.random(2, 1) end,
      "bad argument #2 to 'random' (interval is empty)")
    assert.has_error(function() math.random(1, 2, 3) end, "wrong number of arguments")
  end)

  it("can be seeded by itself", function()
    math.randomseed(42)
    local a = math.random(1000000)
    math.randomseed(42)
    assert.equal(a, math.random(1000000))
    math.randomseed(43)
    assert.not_equal(a, math.random(1000000))
  end)

  it("is keyed by the batch", function()
    lt.seed(4)
    runtime.rng_set {stream = 1, batch = 3}
    local a = math.random()
    math.random()
    runtime.rng_set {stream = 1, batch = 4}
    local b = math.random()
    runtime.rng_set {stream = 1, batch = 3}
    assert.equal(a, math.random())
    assert.not_equal(a, b)
    runtime.rng_set {stream = 0}
  end)
end)
