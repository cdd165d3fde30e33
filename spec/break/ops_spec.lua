-- spec/break/ops_spec.lua: operations given what they cannot take: refused, in the words of whoever
-- called them.
local c = require "ltrain.c"
local lt = require "ltrain"
local raises = require "spec.bind.raises"

local i64 <const> = { dtype = "i64" }
local nan <const> = 0 / 0

describe("sizes", function()
  it("of a maker are named after it", function()
    raises("zeros: impossible shape [-1, 2] (sizes are at least 0)", function() lt.zeros(-1, 2) end)
    raises("ones: impossible shape [2, -3] (sizes are at least 0)",
      function() lt.ones { 2, -3 } end)
  end)

  it("that are negative do not make an empty view", function()
    raises("expand: impossible shape [-5] (sizes are at least 0)",
      function() lt.zeros(1):expand(-5) end)
  end)

  it("of a range that no memory holds are refused at the script's line", function()
    raises("arange: 1e+15 elements are too many", function() lt.arange(1e15) end)
  end)

  it("of a range of large integers are exact", function()
    local top, bottom = math.maxinteger, math.mininteger
    assert.same({ top - 2, top - 1 }, lt.arange(top - 2, top):tolist())
    assert.same({ bottom, bottom + (1 << 62), 0, 1 << 62 },
      lt.arange(bottom, top, 1 << 62):tolist())
    assert.same({ bottom + 2, bottom + 1 }, lt.arange(bottom + 2, bottom, -1):tolist())
  end)

  it("of a step are cut at the end, however large it is", function()
    local x = lt.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }
    assert.same({ { 1, 2 } }, x[{ { 1, 3, math.maxinteger } }]:tolist())
    assert.same({ { 3, 4 } }, x:slice(1, 2, 3, math.maxinteger):tolist())
  end)

  it("of parts may be larger than what is split", function()
    local x = lt.tensor { 1, 2, 3 }
    assert.same({ 1, 2, 3 }, x:split(math.maxinteger)[1]:tolist())
    assert.equal(3, #x:chunk(math.maxinteger))
    raises("split: the sizes do not add up to 3 of shape [3]",
      function() x:split { 1, math.maxinteger } end)
  end)

  it("of a window beyond what kernels count are refused", function()
    raises("conv2d: stride must be at most 2147483647, got {4611686018427387904, "
      .. "4611686018427387904}", function()
      lt.conv2d(lt.ones(1, 1, 4, 4), lt.ones(1, 1, 2, 2), nil, { stride = 1 << 62 })
    end)
  end)
end)

describe("a table with names", function()
  it("is no tensor", function()
    raises("tensor: the table has no element 1, but other keys: only lists become tensors",
      function() lt.tensor { a = 1 } end)
    raises("tensor: [2] has no element 1, but other keys: only lists become tensors",
      function() lt.tensor { {}, { a = 1 } } end)
  end)
end)

describe("an index", function()
  it("made of lists that do not broadcast is called index", function()
    local x = lt.zeros(3, 4)
    local rows, columns = lt.tensor { 0, 1 }, lt.tensor { 0, 1, 2 }
    raises("index: the shapes of the indices do not broadcast: [2] and [3]",
      function() local y = x[{ rows, columns }] return y end)
  end)

  it("that gets values of another shape is called index", function()
    local x = lt.zeros(3, 4)
    local mask = lt.ones({ 3, 4 }, { dtype = "bool" })
    raises("index: values of [5] do not fit into the indexed part [12]",
      function() x[mask] = lt.ones(5) end)
  end)

  it("does not write one element of an expanded tensor, which would change them all", function()
    local x = lt.zeros(1):expand(5)
    raises("index: cannot write into [5] in place: dim 1 is repeated without memory of its own; "
      .. "write x:clone() first", function() x[2] = 1 end)
    assert.equal(0, x:sum():item())
  end)
end)

describe("clipping", function()
  it("refuses parameters where gradients are wanted", function()
    local refused = "in-place write into a leaf that requires grad; do it under lt.no_grad()"
    local w = lt.parameter(lt.tensor { 3.0, 4.0 })
    w.grad = lt.tensor { 6.0, 8.0 }
    raises("clip_grad_norm: " .. refused,
      function() c.clip_grad_norm({ w }, 1.0) end)
    raises("clip_grad_value: " .. refused,
      function() c.clip_grad_value({ w }, 1.0) end)
    assert.same({ 3, 4 }, w:tolist())
    assert.equal(10, c.clip_grad_norm({ w.grad }, 5.0):item())
    assert.near(5.0, w.grad:square():sum():sqrt():item(), 1e-4)
  end)
end)

describe("integers divided by zero", function()
  local x = lt.tensor({ 1, -2, 3 }, { dtype = "i32" })

  it("are an error, as in Lua", function()
    raises("floor_divide: integers divided by zero", function() local y = x // 0 return y end)
    raises("remainder: integers divided by zero", function() local y = x % 0 return y end)
    raises("remainder: integers divided by zero",
      function() local y = x % lt.tensor { 1, 0, 2 } return y end)
    raises("floor_divide: integers divided by zero",
      function() local y = 7 // lt.tensor { 1, 2, 0 } return y end)
  end)

  it("are fine where a float takes part, or nothing is divided", function()
    assert.same({ math.huge, -math.huge, math.huge }, (x // 0.0):tolist())
    assert.same({}, (lt.zeros({ 0 }, i64) // 0):tolist())
    assert.same({ 0, -1, 1 }, (x // 2):tolist())
  end)
end)

describe("integers to a negative power", function()
  local x = lt.tensor({ 1, -2, 3 }, { dtype = "i32" })

  it("are an error: there are no fractions", function()
    local text = "pow: integers to a negative power; write x:to('f32')"
    raises(text, function() local y = x ^ -1 return y end)
    raises(text, function() local y = x ^ lt.tensor { 1, 0, -2 } return y end)
    raises(text, function() local y = 2 ^ lt.tensor { 1, -1, 0 } return y end)
  end)

  it("are fine where a float takes part, or the power is none", function()
    assert.same({ 1, -0.5 }, (x[{ { 1, 2 } }] ^ -1.0):tolist())
    assert.same({ 1, 4, 9 }, (x ^ 2):tolist())
    assert.same({ 1, 1, 1 }, (x ^ 0):tolist())
    assert.same({}, (lt.zeros({ 0 }, i64) ^ -1):tolist())
  end)
end)

describe("a triangle", function()
  it("takes any diagonal", function()
    local x = lt.ones(3, 3)
    assert.equal(9, x:tril(math.maxinteger):sum():item())
    assert.equal(0, x:tril(math.mininteger):sum():item())
    assert.equal(0, x:triu(math.maxinteger):sum():item())
    assert.equal(9, x:triu(math.mininteger):sum():item())
  end)
end)

describe("probabilities", function()
  it("outside 0..1 draw nothing", function()
    raises("bernoulli: probabilities must be in 0..1: got 2",
      function() lt.tensor { 0.5, 2.0 }:bernoulli() end)
    raises("bernoulli: probabilities must be in 0..1: got nan",
      function() lt.tensor { nan }:bernoulli() end)
    raises("multinomial: no probability: nan at 0 (row 1)",
      function() lt.multinomial(lt.tensor { nan, 1.0 }, 1) end)
  end)
end)

describe("cross_entropy", function()
  it("needs classes", function()
    raises("cross_entropy: there are no classes: logits of [2, 0]",
      function() lt.cross_entropy(lt.zeros(2, 0), lt.zeros({ 2 }, i64)) end)
  end)
end)

describe("saving", function()
  it("replaces plain files only", function()
    local ok, message = lt.save("/dev/null", { a = lt.ones(2) })
    assert.is_nil(ok)
    assert.equal("save: not a plain file: /dev/null", message)
  end)
end)
