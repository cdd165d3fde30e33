-- stdlib/linalg/init.lua: lt.linalg, linear algebra: PyTorch's torch.linalg.

local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.linalg", "linalg", {
  factorizations = { "cholesky", "eigh", "eigvalsh", "qr", "svd", "svdvals" },
  solvers = { "det", "inv", "slogdet", "solve", "solve_triangular", "tensorinv",
    "tensorsolve" },
  pseudoinverses = { "cond", "lstsq", "matrix_rank", "pinv" },
  exponential = { "matrix_exp" },
  checked = { "cholesky_ex", "inv_ex", "lu_factor_ex", "solve_ex" },
  householder = { "householder_product" },
  roots = { "matrix_sqrth", "polar" },
  lu = { "lu", "lu_factor", "lu_solve" },
  norms = { "matrix_norm", "norm", "vector_norm" },
  products = { "cross", "diagonal", "matrix_power", "multi_dot", "vander", "vecdot" },
}, { -- options by place
  eigh = "UPLO", eigvalsh = "UPLO", qr = "mode", svd = "full_matrices", lstsq = "rcond",
  norm = "dim keepdim", vector_norm = "dim keepdim", matrix_norm = "dim keepdim",
  tensorinv = "ind", tensorsolve = "dims",
})
