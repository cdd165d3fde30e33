-- spec/linalg/checked_spec.lua: factors that report instead of raising, reflections, roots, and
-- what PyTorch has beside torch.linalg; beside PyTorch: spec/parity.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local linalg = lt.linalg

local function matrix(...)
  local n = 1
  for _, size in ipairs{...} do n = n * size end
  return (lt.arange(n):to("f64") * 0.83 + 0.3):sin():reshape{...}
end
local function turned(x) return x:transpose(-2, -1) end
local function eye(n) return lt.eye(n, {dtype = "f64"}) end
local function positive(...)
  local x = matrix(...)
  return x:matmul(turned(x)) + eye(x.shape[x.ndim])
end
local function near(want, got, bound)
  assert.same(want.shape, got.shape)
  assert((want - got):abs():amax():item() <= (bound or 1e-11))
end
local function checks(f, x) assert.is_true(lt.gradcheck(f, x:detach():requires_grad_())) end

describe("lt.linalg.cholesky_ex", function()
  it("gives the factor, and the order of the first minor that is not positive", function()
    local A = positive(3, 3, 3)
    local L, info = linalg.cholesky_ex(A)
    near(linalg.cholesky(A), L)
    assert.same({"i32", {0, 0, 0}}, {info.dtype, info:tolist()})
    near(linalg.cholesky(A, {upper = true}), (linalg.cholesky_ex(A, {upper = true})))
    A[2][2][2] = -1
    L, info = linalg.cholesky_ex(A)
    assert.same({0, 2, 0}, info:tolist())
    near(linalg.cholesky(A[3]), L[3])
    assert.is_true(L[2]:isnan():any():item())
    assert.matches("cholesky", error_of(linalg.cholesky_ex, A, {check_errors = true}))
  end)
end)

describe("lt.linalg.inv_ex, solve_ex and lu_factor_ex", function()
  local A, B = positive(2, 3, 3), matrix(2, 3, 2)
  local singular = A:clone()
  singular[1]:select(2, 2):zero_()
  it("give what the functions without _ex give, and zeros", function()
    local X, info = linalg.inv_ex(A)
    near(linalg.inv(A), X)
    assert.same({0, 0}, info:tolist())
    near(linalg.solve(A, B), (linalg.solve_ex(A, B)))
    near(linalg.solve(A, turned(B), {left = false}),
      (linalg.solve_ex(A, turned(B), {left = false})))
    near((linalg.lu_factor(A)), (linalg.lu_factor_ex(A)))
    checks(function(x) return (linalg.solve_ex(x, B)) end, A)
  end)

  it("report the pivot that is 0", function()
    local X, info = linalg.inv_ex(singular)
    assert.same({2, 0}, info:tolist())
    near(linalg.inv(A[2]), X[2])
    assert.same({2, 0}, select(2, linalg.solve_ex(singular, B)):tolist())
    assert.is_true((linalg.solve_ex(singular, B)):isnan():any():item())
    assert.same({2, 0}, select(3, linalg.lu_factor_ex(singular)):tolist())
    assert.matches("linalg.lu_factor_ex: a pivot is 0",
      error_of(linalg.lu_factor_ex, singular, {check_errors = true}))
    assert.matches("linalg.inv: matrix 1 of",
      error_of(linalg.inv_ex, singular, {check_errors = true}))
  end)
end)

describe("reflections", function()
  it("make the QR factors again", function()
    for _, shape in ipairs{{4, 4}, {2, 5, 3}, {3, 5}, {1, 1}} do
      local A = matrix(table.unpack(shape))
      local m, n = shape[#shape - 1], shape[#shape]
      local k = math.min(m, n)
      local packed, tau = lt.geqrf(A)
      local R = packed:narrow(-2, 1, k):triu()
      local left = packed:narrow(-1, 1, k)
      local Q = linalg.householder_product(left, tau)
      near(A, Q:matmul(R))
      near(Q, lt.orgqr(left, tau))
      near(eye(k):expand(turned(Q):matmul(Q).shape), turned(Q):matmul(Q))
      local X = matrix(m, 2)
      local all = lt.ormqr(packed, tau, eye(m))
      near(all:matmul(X), lt.ormqr(packed, tau, X))
      near(turned(all):matmul(X), lt.ormqr(packed, tau, X, true, true))
      near(turned(X):matmul(all), lt.ormqr(packed, tau, turned(X), {left = false}))
      near(turned(X):matmul(turned(all)), lt.ormqr(packed, tau, turned(X), false, true))
    end
  end)

  it("have derivatives, and refuse shapes that do not fit", function()
    local packed, tau = lt.geqrf(matrix(4, 3))
    checks(function(x) return linalg.householder_product(x, tau) end, packed)
    checks(function(t) return linalg.householder_product(packed, t) end, tau)
    checks(function(x) return (lt.geqrf(x)) end,
      matrix(4, 3) + lt.eye(4, 3, {dtype = "f64"}))
    assert.matches("householder_product: needs as many rows as columns at least, got %[2, 3%]",
      error_of(linalg.householder_product, matrix(2, 3), matrix(2)))
    assert.matches("ormqr: %[5, 2%] does not fit left reflections of %[4, 3%]",
      error_of(lt.ormqr, packed, tau, matrix(5, 2)))
  end)
end)

describe("lt.linalg.matrix_sqrth and polar", function()
  it("give A again", function()
    local A = positive(2, 3, 3)
    local X = linalg.matrix_sqrth(A)
    near(A, X:matmul(X))
    checks(function(x) return linalg.matrix_sqrth((x + turned(x)) / 2) end, A)
    local U, H = linalg.polar(matrix(2, 4, 3))
    near(matrix(2, 4, 3), U:matmul(H))
    near(eye(3):expand(2, 3, 3), turned(U):matmul(U))
    near(H, turned(H))
    checks(function(x) return (select(2, linalg.polar(x))) end,
      matrix(4, 3) + lt.eye(4, 3, {dtype = "f64"}))
    assert.matches("linalg.polar: needs as many rows", error_of(linalg.polar, matrix(2, 3)))
  end)
end)

describe("linear algebra beside lt.linalg", function()
  it("is what lt.linalg gives", function()
    local A, B = positive(2, 3, 3), matrix(2, 3, 2)
    local L = linalg.cholesky(A)
    near(linalg.det(A):log(), lt.logdet(A))
    assert.is_true(lt.logdet(-eye(3)):isnan():item())
    near(linalg.inv(A), A:pinverse())
    near(linalg.inv(A), lt.cholesky_inverse(L))
    near(linalg.solve(A, B), lt.cholesky_solve(B, L))
    near(linalg.solve(A, B), lt.cholesky_solve(B, turned(L), true))
    near(linalg.solve(turned(L), B), (lt.triangular_solve(B, L, {upper = false, transpose = true})))
    near(linalg.solve(turned(L), B), (lt.triangular_solve(B, turned(L))))
    checks(function(x) return lt.cholesky_solve(B, x) end, L)
  end)

  it("packs and unpacks LU factors", function()
    for _, shape in ipairs{{2, 3, 3}, {4, 2}, {2, 5}} do
      local A = matrix(table.unpack(shape))
      local P, L, U = lt.lu_unpack(lt.lu(A))
      near(A, P:matmul(L):matmul(U))
    end
    local A, B = positive(3, 3), matrix(3, 2)
    near(linalg.solve(A, B), lt.lu_solve(B, lt.lu(A)))
    assert.equal(0, select(3, lt.lu(A, {get_infos = true})):item())
    local P, L = lt.lu_unpack(A, lt.tensor({1, 3, 3}, {dtype = "i32"}), {unpack_data = false})
    assert.same({{1, 0, 0}, {0, 0, 1}, {0, 1, 0}}, P:tolist())
    assert.same({0}, L.shape)
  end)
end)

describe("lt.svd_lowrank and lt.pca_lowrank", function()
  it("find the singular values of a matrix of low rank", function()
    lt.seed(1)
    for _, shape in ipairs{{2, 9, 2}, {2, 5, 2}} do
      local A = matrix(table.unpack(shape)):matmul(matrix(2, 2, 7))
      local U, S, V = lt.svd_lowrank(A, 3)
      near(A, (U * S:unsqueeze(-2)):matmul(turned(V)))
      near(linalg.svdvals(A):narrow(-1, 1, 3), S)
      near(A - 1, (function(u, s, v) return (u * s:unsqueeze(-2)):matmul(turned(v)) end)(
        lt.svd_lowrank(A, 4, {M = lt.ones_like(A)})))
    end
  end)

  it("find principal components", function()
    local A = matrix(9, 2):matmul(matrix(2, 4)) + 3
    local U, S, V = lt.pca_lowrank(A, 2)
    near(A - A:mean({1}, true), (U * S:unsqueeze(-2)):matmul(turned(V)))
    assert.same({4}, select(2, lt.pca_lowrank(A)).shape)
    near(A, (function(u, s, v) return (u * s:unsqueeze(-2)):matmul(turned(v)) end)(
      lt.pca_lowrank(A, 4, false)))
    assert.matches("pca_lowrank: q = 5 components of matrices %[9, 4%]",
      error_of(lt.pca_lowrank, A, 5))
  end)
end)
