-- spec/bind/index_spec.lua: x[...], x(...) and x[...] = v in all their forms.
local lt = require "ltrain"
local raises = require "spec.bind.raises"

local all, new = lt.all, lt.new

-- Elements that encode their position: row * 10 + column, 1-based.
local function grid(rows, columns)
  local t = {}
  for i = 1, rows do
    t[i] = {}
    for j = 1, columns do t[i][j] = i * 10. + j end
  end
  return lt.tensor(t)
end

describe("reading a position", function()
  local x = grid(3, 4)

  it("is 1-based and counts from the end when negative", function()
    assert.same({11, 12, 13, 14}, x[1]:tolist())
    assert.same({31, 32, 33, 34}, x[-1]:tolist())
    assert.equal(23, x(2, 3):item())
    assert.equal(23, x[{2, 3}]:item())
    assert.equal(34, x(-1, -1):item())
    assert.equal(23, x[2][3]:item())
  end)

  it("does not start at 0 and does not pass the end", function()
    raises("index: positions start at 1, got 0", function() return x[0] end)
    raises("index: positions start at 1, got 0", function() return x(1, 0) end)
    raises("index: position 4 is out of range 1..3 of shape [3, 4]", function() return x[4] end)
    raises("index: position -4 is out of range 1..3 of shape [3, 4]", function() return x[-4] end)
    raises("index: position 5 is out of range 1..4 of shape [3, 4]", function() return x(1, 5) end)
    raises("index: more indices than the 2 dims of [3, 4]", function() return x(1, 1, 1) end)
    raises("index: more indices than the 0 dims of []", function() return lt.tensor(1)[1] end)
    raises("index: argument 'index' must be an integer, got 1.5", function() return x[1.5] end)
  end)

  it("gives a view", function()
    local y = lt.zeros(2, 2)
    y[2]:fill_(4)
    assert.same({{0, 0}, {4, 4}}, y:tolist())
  end)
end)

describe("reading a range", function()
  local x = grid(4, 3)

  it("includes both ends", function()
    assert.same({{21, 22, 23}, {31, 32, 33}}, x[{ {2, 3} }]:tolist())
    assert.same({{22, 23}}, x({2, 2}, {2, -1}):tolist())
    assert.same({31, 41}, x({-2, -1}, 1):tolist())
  end)

  it("takes a step", function()
    assert.same({11, 31}, x({1, 4, 2}, 1):tolist())
    assert.same({11, 41}, x({1, 4, 3}, 1):tolist())
    raises("index: a step must be at least 1, got 0", function() return x({1, 2, 0}) end)
    raises("index: a step must be at least 1, got -1", function() return x({2, 1, -1}) end)
  end)

  it("may be empty", function()
    assert.same({0, 3}, x({3, 2}).shape)
    assert.same({0, 3}, x({5, 4}).shape)
    assert.same({0, 3}, x({1, 0}).shape)
  end)

  it("is never clipped", function()
    raises("index: range {2, 5} is out of 1..4 of shape [4, 3]", function() return x({2, 5}) end)
    raises("index: range {-5, 2} is out of 1..4 of shape [4, 3]", function() return x({-5, 2}) end)
    raises("index: positions start at 1, got 0", function() return x({0, 2}) end)
    raises("index: a range is {from, to} or {from, to, step}, got 1 numbers: to the end is "
      .. "{from, -1}", function() return x({1}) end)
    raises("index: a range is {from, to} or {from, to, step}, got 0 numbers: a whole dim is lt.all",
      function() return x({}) end)
  end)

  it("agrees with a walk over all elements", function()
    for from = 1, 4 do
      for to = from - 1, 4 do
        for step = 1, 3 do
          local want = {}
          for i = from, to, step do want[#want + 1] = i * 10. + 2 end
          assert.same(want, x({from, to, step}, 2):tolist())
        end
      end
    end
  end)
end)

describe("lt.all and lt.new", function()
  local x = grid(2, 3)

  it("keep a dim and add one", function()
    assert.same({13, 23}, x(all, 3):tolist())
    assert.same({2, 3}, x[all].shape)
    assert.same({1, 2, 3}, x[new].shape)
    assert.same({2, 1, 3}, x(all, new).shape)
    assert.same({2, 3, 1}, x(all, all, new).shape)
    assert.same({3, 1}, x(1, all, new).shape)
  end)
end)

describe("reading by tensors", function()
  local x = grid(3, 4)

  it("takes integers as contents, from 0", function()
    assert.same({{31, 32, 33, 34}, {11, 12, 13, 14}}, x[lt.tensor { 2, 0 }]:tolist())
    assert.same({12, 32}, x(lt.tensor { 0, 2 }, 2):tolist())
    assert.same({{11, 14}, {21, 24}, {31, 34}}, x(all, lt.tensor { 0, 3 }):tolist())
    assert.same({2, 1, 4}, x[lt.tensor { {2}, {0} }].shape)
  end)

  it("pairs several index tensors", function()
    assert.same({14, 32}, x(lt.tensor { 0, 2 }, lt.tensor { 3, 1 }):tolist())
  end)

  it("selects by one without dims, wherever the list of others stands", function()
    local y = lt.arange(24):reshape{2, 3, 4}
    local one, list = lt.tensor(1), lt.tensor { 2, 0, 1 }
    assert.same({3, 3}, y(one, all, list).shape)
    assert.same({{14, 12, 13}, {18, 16, 17}, {22, 20, 21}}, y(one, all, list):tolist())
    assert.same({{6, 18}, {4, 16}, {5, 17}}, y(all, one, list):t():tolist())
    assert.same({{21, 13, 17}, {23, 15, 19}}, y(2, list, {2, 4, 2}):t():tolist())
    assert.same({{9, 1, 5}}, y(new, lt.tensor(0), list, one):tolist())
    assert.same({3, 1, 1}, y(list:clamp{max = 1}, new, one, {1, 1}).shape)
    y[{one, all, list}] = lt.tensor {{-1}, {-2}, {-3}}
    assert.same({{-1, -1, -1, 15}, {-2, -2, -2, 19}, {-3, -3, -3, 23}}, y[2]:tolist())
  end)

  it("takes bools as masks", function()
    assert.same({{11, 12, 13, 14}, {31, 32, 33, 34}}, x[lt.tensor { true, false, true }]:tolist())
    assert.same({31, 32, 33, 34}, x[x:gt(30)]:tolist())
    assert.same({12, 22, 32}, x(all, lt.tensor {false, true, false, false}):flatten():tolist())
    raises("index: a mask of [2] does not fit dims 1.. of [3, 4]", function()
      return x[lt.tensor { true, false }]
    end)
  end)

  it("refuses floats", function()
    raises("index: a tensor must hold integers or bools, got f32", function()
      return x[lt.tensor { 1. }]
    end)
  end)

  it("has gradients", function()
    local w = grid(3, 4):requires_grad_()
    w[lt.tensor { 2, 2 }]:sum():backward()
    assert.same({{0, 0, 0, 0}, {0, 0, 0, 0}, {2, 2, 2, 2}}, w.grad:tolist())
  end)
end)

describe("writing", function()
  it("goes to positions, ranges, all", function()
    local x = lt.zeros(3, 3)
    x[1] = 1
    x[{2, 2}] = 5
    x[{ 3, {1, 2} }] = lt.tensor { 7, 8 }
    assert.same({{1, 1, 1}, {0, 5, 0}, {7, 8, 0}}, x:tolist())
    x[all] = 9
    assert.same({{9, 9, 9}, {9, 9, 9}, {9, 9, 9}}, x:tolist())
    x[{ all, {1, 3, 2} }] = lt.tensor {{1}, {2}, {3}}
    assert.same({{1, 9, 1}, {2, 9, 2}, {3, 9, 3}}, x:tolist())
  end)

  it("goes to what tensors choose", function()
    local x = grid(2, 2)
    x[x:gt(20)] = 0
    assert.same({{11, 12}, {0, 0}}, x:tolist())
    x[lt.tensor { 1 }] = lt.tensor { {5., 6.} }
    assert.same({{11, 12}, {5, 6}}, x:tolist())
    x[{ 1, lt.tensor { 1 } }] = 3
    assert.same({{11, 3}, {5, 6}}, x:tolist())
  end)

  it("shows in views of the same memory", function()
    local x = lt.zeros(2, 2)
    local row = x[2]
    x[{2, 1}] = 4
    assert.same({4, 0}, row:tolist())
  end)

  it("reports what does not fit", function()
    local x = lt.zeros(2, 3)
    raises("copy: [2] does not fit into [3]", function() x[1] = lt.ones(2) end)
    raises("index: position 3 is out of range 1..2 of shape [2, 3]", function() x[3] = 1 end)
    raises("index: can only assign a tensor or a number, got table (write lt.tensor{...})",
      function() x[1] = {1, 2, 3} end)
    raises("index: 0.5 does not fit into a tensor of i64", function() lt.tensor({1})[1] = 0.5 end)
  end)

  it("into a leaf that requires grad is refused, except under no_grad", function()
    local w = lt.ones(2, {requires_grad = true})
    local ok, message = pcall(function() w[1] = 3 end)
    assert.is_false(ok)
    assert.matches("index_spec.lua:%d+: .*leaf that requires grad", message)
    lt.no_grad(function() w[1] = 3 end)
    assert.same({3, 1}, w:tolist())
  end)
end)

describe("writing with history", function()
  it("gives the written part its gradient and takes it from what was overwritten", function()
    local w = lt.tensor({1., 2., 3.}, {requires_grad = true})
    local v = lt.tensor(5., {requires_grad = true})
    local y = w * 2
    y[2] = v * 10
    assert.same({2, 50, 6}, y:tolist());
    (y * lt.tensor {1., 3., 7.}):sum():backward()
    assert.same({2, 0, 14}, w.grad:tolist())
    assert.equal(30, v.grad:item())
  end)

  it("makes a tensor without history part of the tape", function()
    local v = lt.tensor({5., 6.}, {requires_grad = true})
    local y = lt.zeros(3)
    y[{ {2, 3} }] = v * v
    assert.is_true(y.requires_grad)
    y:sum():backward()
    assert.same({10, 12}, v.grad:tolist())
  end)

  it("by tensors as well", function()
    local w = lt.tensor({1., 2., 3.}, {requires_grad = true})
    local y = w * 2
    y[lt.tensor { true, false, true }] = 0
    assert.same({0, 4, 0}, y:tolist())
    y:sum():backward()
    assert.same({0, 2, 0}, w.grad:tolist())
  end)
end)
