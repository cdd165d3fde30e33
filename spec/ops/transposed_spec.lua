local lt = require "ltrain"

-- Element by element, by its place in memory: x[n] of a permuted view is known from arange.
local function check(dtype, size, order)
  local n = 1
  for _, s in ipairs(size) do n = n * s end
  local x = (lt.arange(0, n) % 101):to(dtype):reshape(size)
  local view = x:permute(table.unpack(order))
  local copy = view:contiguous()
  assert.is_true(copy:is_contiguous())
  local stride = {}
  for d = #size, 1, -1 do stride[d] = d == #size and 1 or stride[d + 1] * size[d + 1] end
  local got, at, want = copy:flatten():tolist(), 0, {}
  local function walk(d, from)
    if d > #order then
      at = at + 1
      want[at] = from % 101
      return
    end
    for k = 0, size[order[d]] - 1 do walk(d + 1, from + k * stride[order[d]]) end
  end
  walk(1, 0)
  assert.same(want, got)
end

describe("copies whose source is along another dim", function()
  for _, dtype in ipairs{"u8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"} do
    it("have each element of " .. dtype, function()
      check(dtype, {17, 33}, {2, 1})
      check(dtype, {70, 9}, {2, 1})
      check(dtype, {2, 19, 3, 11}, {1, 3, 4, 2})
      check(dtype, {3, 8, 70}, {3, 1, 2})
      check(dtype, {7, 40}, {2, 1}) -- too short for blocks
    end)
  end

  it("keep to the elements of a view", function()
    local x = lt.arange(0, 40 * 30):reshape(40, 30)
    local part = x[{{3, 37}, {5, 28}}]
    local to = lt.zeros(26, 37)
    to[{{2, 25}, {2, 36}}]:copy_(part:transpose(1, 2))
    assert.equal(part:sum():item(), to:sum():item())
    assert.is_true(lt.equal(to[{{2, 25}, {2, 36}}]:transpose(1, 2), part:to("f32")))
    assert.equal(0, to[1]:sum():item() + to[26]:sum():item())
  end)
end)

describe("the gradient of a transposed weight", function()
  it("is that of the weight, and lies as it does", function()
    local w, x = lt.randn(12, 20):requires_grad_(), lt.randn(9, 12):requires_grad_()
    local g = lt.randn(9, 20)
    require("ltrain.c").linear(x, w:transpose(1, 2)):backward(g)
    assert.is_true(w.grad:is_contiguous())
    assert.is_true(lt.allclose(w.grad, x:detach():transpose(1, 2):matmul(g), {atol = 1e-5}))
    assert.is_true(lt.allclose(x.grad, g:matmul(w:detach():transpose(1, 2)), {atol = 1e-5}))
  end)
end)
