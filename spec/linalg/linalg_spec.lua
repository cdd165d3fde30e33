-- spec/linalg/linalg_spec.lua: lt.linalg against its definitions; beside PyTorch: spec/parity.
local child = require "spec.cli.child"
local error_of = require "spec.error_of"
local lt = require "ltrain"

local linalg = lt.linalg

local function matrix(...)
  local n = 1
  for _, size in ipairs{...} do n = n * size end
  return (lt.arange(n):to("f64") * 0.83 + 0.3):sin():reshape{...}
end

local function turned(x) return x:transpose(-2, -1) end
-- Singular and eigenvalues far from each other.
local function apart(...)
  local x = matrix(...)
  local m, n = x.shape[x.ndim - 1], x.shape[x.ndim]
  local d = lt.diag(lt.arange(1, math.max(m, n) + 1):to("f64") * 4)
  return x + d:narrow(1, 1, m):narrow(2, 1, n)
end
local function positive(...)
  local x = matrix(...)
  return x:matmul(turned(x)) + lt.eye(x.shape[x.ndim], {dtype = "f64"})
end
local function near(want, got, bound)
  assert.same(want.shape, got.shape)
  if want:numel() > 0 then
    local d = (want - got):abs():amax():item()
    assert(d <= (bound or 1e-11), ("differs by %g"):format(d))
  end
end
local function checks(f, x) assert.is_true(lt.gradcheck(f, x:detach():requires_grad_())) end
local function checks_twice(f, x)
  assert.is_true(lt.gradgradcheck(f, x:detach():requires_grad_()))
end
local function eye(n) return lt.eye(n, {dtype = "f64"}) end

local SHAPES <const> = {{3, 3}, {2, 4, 4}, {1, 1}}

describe("linalg.solve", function()
  it("solves for matrices, vectors, batches that broadcast, and from the right", function()
    local a, b = apart(2, 3, 3), matrix(2, 3, 4)
    near(b, a:matmul(linalg.solve(a, b)))
    near(matrix(3), a[1]:matmul(linalg.solve(a[1], matrix(3))))
    near(matrix(2, 3), a:matmul(linalg.solve(a, matrix(2, 3)):unsqueeze(-1)):squeeze(-1))
    near(matrix(5, 1, 3, 2):expand(5, 2, 3, 2), a:matmul(linalg.solve(a, matrix(5, 1, 3, 2))))
    near(matrix(2, 4, 3), linalg.solve(a, matrix(2, 4, 3), {left = false}):matmul(a))
    assert.equal("f32", linalg.solve(a:to "f32", b:to "f32").dtype)
    near(b, a:to("f32"):matmul(linalg.solve(a:to "f32", b:to "f32")):to "f64", 1e-5)
  end)

  it("has derivatives by both", function()
    local a, b = apart(2, 3, 3), matrix(2, 3, 2)
    checks(function(x) return linalg.solve(x, b) end, a)
    checks(function(x) return linalg.solve(a, x) end, b)
    checks_twice(function(x) return linalg.solve(x, b) end, a)
  end)

  it("names a singular matrix of a batch", function()
    local a = lt.stack({eye(2), lt.zeros({2, 2}, {dtype = "f64"})}, 1)
    assert.matches("linalg.solve: matrix 2 of [2, 2, 2] is singular",
      error_of(linalg.solve, a, matrix(2, 2, 1)), 1, true)
    assert.matches("linalg.solve: the matrix [2, 2] is singular",
      error_of(linalg.solve, a[2], matrix(2, 1)), 1, true)
  end)

  it("refuses shapes that do not fit, and dtypes that LAPACK lacks", function()
    assert.matches("linalg.solve: needs square matrices, got [2, 3]",
      error_of(linalg.solve, matrix(2, 3), matrix(2, 1)), 1, true)
    assert.matches("linalg.solve: [3, 3] and [2, 1] do not fit",
      error_of(linalg.solve, matrix(3, 3), matrix(2, 1)), 1, true)
    assert.matches("linalg.solve: the batches of [2, 3, 3] and [4, 3, 1] do not broadcast",
      error_of(linalg.solve, matrix(2, 3, 3), matrix(4, 3, 1)), 1, true)
    assert.matches("linalg.solve: needs f32 or f64, got f16",
      error_of(linalg.solve, matrix(2, 2):to "f16", matrix(2, 1):to "f16"), 1, true)
    assert.matches("linalg.solve: needs a floating tensor, got i64",
      error_of(linalg.solve, lt.ones({2, 2}, {dtype = "i64"}), matrix(2, 1)), 1, true)
  end)
end)

describe("linalg.solve_triangular", function()
  it("solves with either half, from either side, and with ones on the diagonal", function()
    local a, b = apart(2, 3, 3), matrix(2, 3, 4)
    near(b, a:triu():matmul(linalg.solve_triangular(a, b, {upper = true})))
    near(b, a:tril():matmul(linalg.solve_triangular(a, b, {upper = false})))
    near(turned(b), linalg.solve_triangular(a, turned(b), {upper = true, left = false})
      :matmul(a:triu()))
    near(b, (a:tril(-1) + eye(3)):matmul(linalg.solve_triangular(a, b, {upper = false,
      unitriangular = true})))
  end)

  it("has derivatives by both", function()
    local a, b = apart(2, 3, 3), matrix(2, 3, 2)
    for _, o in ipairs{{upper = true}, {upper = false, unitriangular = true}} do
      checks(function(x) return linalg.solve_triangular(x, b, o) end, a)
      checks(function(x) return linalg.solve_triangular(a, x, o) end, b)
      checks_twice(function(x) return linalg.solve_triangular(x, b, o) end, a)
    end
  end)
end)

describe("linalg.inv, det and slogdet", function()
  it("are the inverse and the determinant", function()
    for _, shape in ipairs(SHAPES) do
      local a = apart(table.unpack(shape))
      local n = a.shape[a.ndim]
      near(eye(n):expand(a.shape), a:matmul(linalg.inv(a)))
      local sign, log = linalg.slogdet(a)
      near(linalg.det(a), sign * log:exp(), 1e-9)
    end
    assert.near(-2, linalg.det(lt.tensor({{1, 2}, {3, 4}}, {dtype = "f64"})):item(), 1e-12)
    assert.near(-1, linalg.slogdet(lt.tensor({{0.0, 1}, {1, 0}})):item(), 0)
  end)

  it("have derivatives of both orders", function()
    local a = apart(2, 3, 3)
    checks(linalg.inv, a)
    checks(linalg.det, a)
    checks(function(x) return (select(2, linalg.slogdet(x))) end, a)
    checks_twice(linalg.det, a * 0.2)
    checks_twice(linalg.inv, a)
  end)

  it("give a singular matrix 0, with its cofactors as derivative", function()
    local a = lt.tensor({{1.0, 2}, {2, 4}}, {dtype = "f64"}):requires_grad_()
    local d = linalg.det(a)
    assert.equal(0, d:item())
    d:backward()
    near(lt.tensor({{4.0, -2}, {-2, 1}}, {dtype = "f64"}), a.grad)
    local sign, log = linalg.slogdet(a:detach())
    assert.same({0, -1 / 0}, {sign:item(), log:item()})
    assert.matches("linalg.inv: the matrix [2, 2] is singular", error_of(linalg.inv, a), 1, true)
  end)
end)

describe("functions of lt.linalg that are made of factors", function()
  it("call errors of these by their own names", function()
    local singular, nan = lt.zeros(2, 2), lt.full({2, 2}, 0 / 0)
    assert.matches("linalg.matrix_power: the matrix [2, 2] is singular",
      error_of(linalg.matrix_power, singular, -1), 1, true)
    for _, name in ipairs{"pinv", "matrix_rank", "cond", "svdvals"} do
      assert.matches("linalg." .. name .. ": the matrix [2, 2] has NaN",
        error_of(linalg[name], nan), 1, true)
    end
    assert.matches("linalg.lstsq: the matrix [2, 2] has NaN",
      error_of(linalg.lstsq, nan, nan), 1, true)
    assert.matches("linalg.matrix_norm: the matrix [2, 2] has NaN",
      error_of(linalg.matrix_norm, nan, "nuc"), 1, true)
    assert.matches("linalg.inv: needs f32 or f64, got bf16",
      error_of(linalg.inv, singular:to "bf16"), 1, true)
  end)
end)

describe("linalg.cholesky", function()
  it("is the lower or the upper factor", function()
    for _, shape in ipairs(SHAPES) do
      local a = positive(table.unpack(shape))
      local l = linalg.cholesky(a)
      near(a, l:matmul(turned(l)))
      near(l, l:tril())
      near(turned(l), linalg.cholesky(a, {upper = true}))
    end
  end)

  it("has derivatives of both orders", function()
    local function f(x) return linalg.cholesky(x:matmul(turned(x)) + eye(3)) end
    checks(f, apart(2, 3, 3))
    checks_twice(f, apart(3, 3))
  end)

  it("refuses what is not positive-definite", function()
    assert.matches("linalg.cholesky: the matrix [2, 2] is not positive-definite",
      error_of(linalg.cholesky, -eye(2)), 1, true)
  end)
end)

describe("linalg.eigh and eigvalsh", function()
  it("are the eigenvalues, ascending, and the eigenvectors", function()
    for _, shape in ipairs(SHAPES) do
      local a = positive(table.unpack(shape))
      local w, v = linalg.eigh(a)
      near(a:matmul(v), v * w:unsqueeze(-2))
      near(w, (w:sort()))
      near(w, linalg.eigvalsh(a))
    end
    near(linalg.eigvalsh(positive(3, 3)), linalg.eigvalsh(positive(3, 3):triu(), {UPLO = "U"}))
  end)

  it("have derivatives of both orders", function()
    local function f(x)
      local w, v = linalg.eigh(x + turned(x))
      return (v * w:sin():unsqueeze(-2)):matmul(turned(v))
    end
    checks(f, apart(2, 3, 3))
    checks(function(x) return linalg.eigvalsh(x + turned(x)) end, apart(3, 3))
    checks_twice(f, apart(3, 3))
  end)

  it("refuse NaN", function()
    assert.matches("linalg.eigh: the matrix [2, 2] has NaN or infinity, or the algorithm does not "
      .. "converge", error_of(linalg.eigh, eye(2) * (0 / 0)), 1, true)
  end)
end)

describe("linalg.qr", function()
  it("is Q of orthogonal columns and an upper triangle, in three modes", function()
    for _, shape in ipairs{{3, 3}, {2, 5, 3}, {2, 3, 5}} do
      local a = apart(table.unpack(shape))
      for _, mode in ipairs{"reduced", "complete"} do
        local q, r = linalg.qr(a, {mode = mode})
        near(a, q:matmul(r))
        near(r, r:triu())
        near(eye(q.shape[q.ndim]):expand(turned(q):matmul(q).shape), turned(q):matmul(q))
      end
      local q, r = linalg.qr(a, {mode = "r"})
      assert.same({0}, q.shape)
      near(select(2, linalg.qr(a)), r)
    end
  end)

  it("has derivatives of both orders, of tall and wide matrices", function()
    local function f(x)
      local q, r = linalg.qr(x)
      return (q:sin():matmul(r:cos()))
    end
    checks(f, apart(2, 4, 3))
    checks(f, apart(3, 5))
    checks_twice(f, apart(3, 2))
    local a = apart(4, 2):requires_grad_()
    assert.matches("linalg.qr: mode 'complete' of 4 x 2 has no derivative: use 'reduced'",
      error_of(function() (linalg.qr(a, {mode = "complete"})):sum():backward() end), 1, true)
  end)
end)

describe("linalg.svd and svdvals", function()
  it("are U, S and Vh, whole or reduced", function()
    for _, shape in ipairs{{3, 3}, {2, 5, 3}, {2, 3, 5}, {1, 4}} do
      local a = matrix(table.unpack(shape))
      local u, s, vh = linalg.svd(a, {full_matrices = false})
      near(a, (u * s:unsqueeze(-2)):matmul(vh))
      near(s, (s:sort{descending = true}))
      near(s, linalg.svdvals(a))
      local m, n = a.shape[a.ndim - 1], a.shape[a.ndim]
      u, s, vh = linalg.svd(a)
      near(eye(m):expand(u.shape), turned(u):matmul(u))
      near(eye(n):expand(vh.shape), turned(vh):matmul(vh))
      assert.equal(math.min(m, n), s.shape[s.ndim])
    end
  end)

  it("have derivatives of both orders", function()
    local function f(x)
      local u, s, vh = linalg.svd(x, {full_matrices = false})
      return (u * s:sin():unsqueeze(-2)):matmul(vh)
    end
    checks(f, apart(2, 4, 3))
    checks(f, apart(3, 5))
    checks(linalg.svdvals, apart(3, 4))
    checks_twice(f, apart(3, 2))
  end)
end)

describe("empty matrices", function()
  it("have results of their shapes", function()
    local none, flat = lt.zeros{2, 0, 0}, lt.zeros{3, 0}
    assert.same({1, 1}, linalg.det(none):tolist())
    assert.same({2, 0, 0}, linalg.inv(none).shape)
    assert.same({2, 0, 0}, linalg.cholesky(none).shape)
    assert.same({2, 0}, linalg.eigvalsh(none).shape)
    local u, s, vh = linalg.svd(flat)
    assert.same({{3, 3}, {0}, {0, 0}}, {u.shape, s.shape, vh.shape})
    near(lt.eye(3), u)
    near(lt.eye(3), (linalg.qr(flat, {mode = "complete"})))
    assert.same({0, 3, 3}, linalg.inv(lt.zeros{0, 3, 3}).shape)
    assert.same({2, 3, 0}, linalg.solve(lt.eye(3):expand(2, 3, 3), lt.zeros{2, 3, 0}).shape)
  end)
end)

describe("linalg.pinv, matrix_rank, cond and lstsq", function()
  local low = matrix(4, 2):matmul(matrix(2, 3)) -- of rank 2

  it("see the rank", function()
    assert.equal(2, linalg.matrix_rank(low):item())
    assert.equal(3, linalg.matrix_rank(apart(4, 3)):item())
    assert.equal(1, linalg.matrix_rank(lt.diag(lt.tensor{5.0, 0.1}), {atol = 1}):item())
    local p = linalg.pinv(low)
    near(low, low:matmul(p):matmul(low))
    near(p, p:matmul(low):matmul(p))
    near(linalg.inv(positive(3, 3)), linalg.pinv(positive(3, 3), {hermitian = true}), 1e-9)
    checks(linalg.pinv, apart(4, 3))
    assert.near(4, linalg.cond(lt.diag(lt.tensor{2.0, 8.0})):item(), 1e-5)
    assert.near(4, linalg.cond(lt.diag(lt.tensor{2.0, 8.0}), 1):item(), 1e-5)
    local two = lt.stack({lt.zeros(2, 2), lt.diag(lt.tensor{2.0, 8.0})}, 1):requires_grad_()
    for ord, want in pairs{[1] = 4, [-1] = 0.25, [math.huge] = 4, fro = 4.25} do
      local y = linalg.cond(two, ord)
      assert.equal(math.huge, y[1]:item())
      assert.near(want, y[2]:item(), 1e-5)
      two.grad = nil
      y[2]:backward()
      assert.equal(0, two.grad[1]:abs():sum():item())
    end
  end)

  it("find what is nearest", function()
    local a, b = apart(5, 3), matrix(5, 2)
    local x, residuals, rank, s = linalg.lstsq(a, b)
    near(lt.zeros({3, 2}, {dtype = "f64"}), turned(a):matmul(a:matmul(x) - b), 1e-10)
    near((a:matmul(x) - b):square():sum(1), residuals)
    assert.equal(3, rank:item())
    near(linalg.svdvals(a), s)
    assert.same({0}, (select(2, linalg.lstsq(low, matrix(4, 2)))).shape)
    assert.matches("linalg.lstsq: [5, 3] and [4, 2] have not as many rows",
      error_of(linalg.lstsq, a, matrix(4, 2)), 1, true)
  end)
end)

describe("norms", function()
  local x = lt.tensor({{3.0, -4}, {0, 12}}, {dtype = "f64"})

  it("of vectors", function()
    assert.equal(13, linalg.vector_norm(x):item())
    assert.equal(19, linalg.vector_norm(x, 1):item())
    assert.equal(12, linalg.vector_norm(x, math.huge):item())
    assert.equal(0, linalg.vector_norm(x, -math.huge):item())
    assert.equal(3, linalg.vector_norm(x, 0):item())
    assert.same({5, 12}, linalg.vector_norm(x, {dim = 2}):tolist())
    assert.same({{5}, {12}}, linalg.norm(x, 2, {dim = 2, keepdim = true}):tolist())
    assert.equal("f64", linalg.norm(x:to "f32", {dtype = "f64"}).dtype)
  end)

  it("of matrices", function()
    assert.equal(13, linalg.matrix_norm(x):item())
    assert.equal(13, linalg.norm(x):item())
    assert.same({16, 3, 12, 7}, {linalg.norm(x, 1):item(), linalg.norm(x, -1):item(),
      linalg.norm(x, math.huge):item(), linalg.norm(x, -math.huge):item()})
    local s = linalg.svdvals(x):tolist()
    assert.near(s[1], linalg.matrix_norm(x, 2):item(), 1e-12)
    assert.near(s[2], linalg.matrix_norm(x, -2):item(), 1e-12)
    assert.near(s[1] + s[2], linalg.matrix_norm(x, "nuc"):item(), 1e-12)
    assert.same({2, 1, 1}, linalg.matrix_norm(matrix(2, 3, 4), 2, {keepdim = true}).shape)
    for _, ord in ipairs{"fro", "nuc", 1, 2, -2, math.huge} do
      checks(function(y) return linalg.matrix_norm(y, ord) end, apart(2, 3, 4))
    end
  end)

  it("refuse an order and dims that they lack", function()
    assert.matches("linalg.matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, math.huge or "
      .. "-math.huge: got 3", error_of(linalg.matrix_norm, x, 3), 1, true)
    assert.matches("linalg.norm: ord 'fro' needs a matrix: got [2]",
      error_of(linalg.norm, x[1], "fro"), 1, true)
    assert.matches("linalg.matrix_norm: both dims are dim 1",
      error_of(linalg.matrix_norm, x, "fro", {dim = {1, -2}}), 1, true)
  end)
end)

describe("products", function()
  it("multi_dot, matrix_power, cross, vecdot, diagonal and trace are what they say", function()
    local a, b, c = matrix(2, 6), matrix(6, 3), matrix(3, 5)
    near(a:matmul(b):matmul(c), linalg.multi_dot{a, b, c})
    near(a[1]:matmul(b):matmul(c):matmul(matrix(5)), linalg.multi_dot{a[1], b, c, matrix(5)})
    local s = apart(2, 3, 3)
    near(s:matmul(s):matmul(s):matmul(s):matmul(s), linalg.matrix_power(s, 5), 1e-6)
    near(eye(3):expand(2, 3, 3), linalg.matrix_power(s, 0))
    near(linalg.inv(s:matmul(s)), linalg.matrix_power(s, -2))
    assert.same({0, 0, 1}, linalg.cross(lt.tensor{1, 0, 0}, lt.tensor{0, 1, 0}):tolist())
    assert.same({5, 25}, linalg.vecdot(lt.tensor{{1, 2}, {3, 4}}, lt.tensor{{1, 2}, {3, 4}})
      :tolist())
    near(s:diagonal(1, -2, -1), linalg.diagonal(s, {offset = 1}))
    assert.equal(5, lt.trace(lt.tensor{{1, 2, 3}, {4, 4, 6}}):item())
  end)

  it("refuse what does not fit", function()
    assert.matches("linalg.multi_dot: tensors 1 and 2 do not fit: [2, 6] x [3, 5]",
      error_of(linalg.multi_dot, {matrix(2, 6), matrix(3, 5)}), 1, true)
    assert.matches("linalg.cross: dim -1 of [2] and [2] must be of size 3",
      error_of(linalg.cross, matrix(2), matrix(2)), 1, true)
    assert.matches("trace: needs a matrix: got [3]", error_of(lt.trace, matrix(3)), 1, true)
  end)
end)

describe("gradients by a symmetric matrix", function()
  local function gradient(f, a)
    a = a:detach():requires_grad_()
    f(a):backward()
    return a.grad
  end
  local weight = matrix(3, 3)

  it("of symmetric factors are symmetric, so that steps leave it symmetric", function()
    local positive_3 <const> = positive(3, 3)
    for name, f in pairs {
      cholesky = function(a) return (linalg.cholesky(a) * weight):sum() end,
      eigh = function(a) return ((select(2, linalg.eigh(a))) * weight):sum() end,
      eigh_of_upper = function(a)
        return ((select(2, linalg.eigh(a, {UPLO = "U"}))) * weight):sum()
      end,
      eigvalsh = function(a) return (linalg.eigvalsh(a) * weight[1]):sum() end,
      slogdet = function(a) return (select(2, linalg.slogdet(a))) end,
    } do
      local g = gradient(f, positive_3)
      local d = (g - turned(g)):abs():amax():item()
      assert(d < 1e-12 and g:abs():amax():item() > 0, ("%s: %g"):format(name, d))
    end
  end)

  it("of pinv are those of inv, with hermitian or without", function()
    local a = positive(3, 3)
    local want = gradient(function(x) return (linalg.inv(x) * weight):sum() end, a)
    for _, hermitian in ipairs {false, true} do
      near(want, gradient(function(x)
        return (linalg.pinv(x, {hermitian = hermitian}) * weight):sum()
      end, a), 1e-9)
    end
  end)

  it("of pinv, lstsq and norms are finite where singular values are equal", function()
    local ones <const> = lt.ones({3, 3}, {dtype = "f64"})
    near(-ones, gradient(function(a) return linalg.pinv(a):sum() end, eye(3)))
    near(-ones, gradient(function(a) return linalg.pinv(a, {hermitian = true}):sum() end, eye(3)))
    near(ones * (-1 / 9), gradient(function(a) return linalg.pinv(a):sum() end, ones))
    near(-ones, gradient(function(a) return (linalg.lstsq(a, ones:narrow(2, 1, 1))):sum() end,
      eye(3)))
    near(eye(3) / 3, gradient(function(a) return linalg.matrix_norm(a, 2) end, eye(3)))
    near(eye(3) / 3, gradient(function(a) return linalg.matrix_norm(a, -2) end, eye(3)))
    checks_twice(linalg.pinv, apart(4, 3))
    checks_twice(linalg.pinv, apart(3, 4))
  end)
end)

describe("LAPACKE", function()
  it("that is missing is said in a sentence, with what to install", function()
    local folder = child.folder()
    for _, name in ipairs{"liblapacke.so.3", "liblapacke.so", "libopenblas.so.0"} do
      child.write(folder .. "/" .. name, "") -- is found first, and is no library
    end
    local script = "local lt = require 'ltrain' lt.linalg.solve(lt.eye(2), lt.eye(2))"
    local _, _, err = child.run({"-e", script}, {env = {LD_LIBRARY_PATH = folder}})
    child.remove(folder)
    assert.matches("linalg.solve: needs LAPACKE: apt install liblapacke", err, 1, true)
  end)
end)

describe("linalg.matrix_exp", function()
  it("is the sum of the series, with gradients of every order", function()
    local t = lt.tensor{{0, -2.5}, {2.5, 0}}:to("f64") -- a rotation
    local c, s = math.cos(2.5), math.sin(2.5)
    near(lt.tensor({{c, -s}, {s, c}}, {dtype = "f64"}), linalg.matrix_exp(t))
    local x = matrix(2, 3, 3)
    near(eye(3):expand(2, 3, 3), linalg.matrix_exp(x):matmul(linalg.matrix_exp(-x)))
    near(lt.tensor({math.exp(-30)}, {dtype = "f64"}):reshape(1, 1),
      linalg.matrix_exp(lt.full({1, 1}, -30.0, {dtype = "f64"})), 1e-24)
    checks_twice(linalg.matrix_exp, matrix(2, 2))
    assert.matches("linalg.matrix_exp: needs square matrices, got %[2, 3%]",
      error_of(linalg.matrix_exp, lt.ones(2, 3)))
  end)
end)

describe("linalg.lu", function()
  -- The largest |x| of a column stands below: rows are interchanged.
  local function rows(...) return (apart(...) * 1.5):flip(-2) end

  it("gives factors of any shape, with gradients of every order", function()
    for _, shape in ipairs{{3, 3}, {2, 3, 3}, {2, 4}, {4, 2}} do
      local A = rows(table.unpack(shape))
      local P, L, U = linalg.lu(A)
      near(A, P:matmul(L):matmul(U))
      assert.equal(0, L:triu(1):abs():sum():item() + U:tril(-1):abs():sum():item())
      assert.is_true(L:abs():amax():item() <= 1)
      checks_twice(function(x)
        local _, l, u = linalg.lu(x)
        return (l * 2):square():sum() + u:square():sum()
      end, A)
    end
  end)

  it("has pivots as LAPACK, and solves by them", function()
    local A, B = rows(3, 3), matrix(3, 2)
    local LU, pivots = linalg.lu_factor(A)
    assert.same({3, 2, 3}, pivots:tolist())
    assert.equal("i32", pivots.dtype)
    near(B, A:matmul(linalg.lu_solve(LU, pivots, B)))
    near(B, turned(A):matmul(linalg.lu_solve(LU, pivots, B, {adjoint = true})))
    near(turned(B), linalg.lu_solve(LU, pivots, turned(B), {left = false}):matmul(A))
    checks_twice(function(x)
      local packed, at = linalg.lu_factor(x)
      return linalg.lu_solve(packed, at, B)
    end, A)
  end)

  it("refuses what it cannot do", function()
    assert.matches("linalg.lu: pivot must be true: got false",
      error_of(linalg.lu, lt.ones(2, 2), {pivot = false}))
    assert.matches("linalg.lu_solve: pivots must be %[.., N%] of LU %[2, 2%]: got nil",
      error_of(linalg.lu_solve, lt.ones(2, 2), nil, lt.ones(2, 2)))
  end)
end)

describe("linalg.tensorinv and tensorsolve", function()
  it("are inverse to tensordot", function()
    local A, B = apart(6, 6):reshape(2, 3, 6), matrix(2, 3)
    local X = linalg.tensorsolve(A, B)
    near(B, lt.tensordot(A, X, 1))
    near(X, lt.tensordot(linalg.tensorinv(A), B, 2))
    assert.matches("linalg.tensorinv: the first 1 dims of %[2, 3, 6%] have not as many elements",
      error_of(linalg.tensorinv, A, {ind = 1}))
    checks_twice(function(x) return linalg.tensorsolve(x, B) end, A)
  end)
end)

describe("linalg.vander", function()
  it("has the powers of each element", function()
    assert.same({{1, 2, 4}, {1, 3, 9}}, linalg.vander(lt.tensor{2.0, 3}, 3):tolist())
    assert.same({2, 2}, linalg.vander(lt.tensor{2.0, 3}).shape)
  end)
end)
