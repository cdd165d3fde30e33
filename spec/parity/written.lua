-- spec/parity/written.lua: what the operations of stdlib/ops take, as lt.ops() says it of the
-- others: inputs, arguments in PyTorch's order, and in a third table `places`: arguments by place;
-- `named`: tensors by name; `dim_first`: the dim stands after the first tensor; `number`: the last
-- tensor may be a number; `pairs`: complex numbers; `list`: tensors come in a list; `unsampled`:
-- where the test is, without a small sample. tensordot, whose dims may be two lists, is left to
-- spec/parity/images.lua.
local function row(inputs, args, more)
  local list = {}
  for name, kind in args:gmatch "([%w_]+):(%w+)" do list[#list + 1] = {name = name, type = kind} end
  local out = {inputs = inputs, args = list, kind = "written", list = false}
  for key, value in pairs(more or {}) do out[key] = value end
  return out
end

local rows <const> = {
  affine_grid = row({"theta"}, "size:sizes align_corners:flag", {places = {"size"}}),
  channel_shuffle = row({"x"}, "groups:int", {places = {"groups"}}),
  atleast_1d = row({"x"}, ""), atleast_2d = row({"x"}, ""), atleast_3d = row({"x"}, ""),
  block_diag = row({"x"}, "", {list = true}), cartesian_prod = row({"x"}, "", {list = true}),
  column_stack = row({"x"}, "", {list = true}), corrcoef = row({"x"}, ""),
  combinations = row({"x"}, "r:int with_replacement:flag",
    {unsampled = "spec/ops/differences_spec.lua"}),
  gradient = row({"x"}, "spacing:number dim:dims edge_order:int",
    {unsampled = "spec/ops/differences_spec.lua"}),
  cov = row({"x"}, "correction:int", {named = {"fweights", "aweights"}}),
  cumulative_trapezoid = row({"y", "x"}, "dx:number dim:dim"),
  deg2rad = row({"x"}, ""), diag_embed = row({"x"}, "offset:int dim1:dim dim2:dim"),
  diagflat = row({"x"}, "offset:int", {places = {"offset"}}),
  diff = row({"x"}, "n:int dim:dim", {named = {"prepend", "append"}}),
  dsplit = row({"x"}, "parts:sizes", {places = {"parts"}}),
  dstack = row({"x"}, "", {list = true}),
  fliplr = row({"x"}, ""), flipud = row({"x"}, ""), float_power = row({"a", "b"}, ""),
  frac = row({"x"}, ""), heaviside = row({"x", "values"}, ""),
  hsplit = row({"x"}, "parts:sizes", {places = {"parts"}}),
  hstack = row({"x"}, "", {list = true}), isin = row({"x", "test"}, "invert:flag"),
  isneginf = row({"x"}, ""), isposinf = row({"x"}, ""),
  kthvalue = row({"x"}, "k:int dim:dim keepdim:flag"), lcm = row({"a", "b"}, ""),
  ldexp = row({"x", "exponent"}, ""), logaddexp2 = row({"a", "b"}, ""), msort = row({"x"}, ""),
  nanquantile = row({"x"}, "q:number dim:dim keepdim:flag interpolation:choice",
    {named = {"q"}}),
  rad2deg = row({"x"}, ""), ravel = row({"x"}, ""), signbit = row({"x"}, ""),
  trapezoid = row({"y", "x"}, "dx:number dim:dim"),
  unflatten = row({"x"}, "dim:dim sizes:sizes"),
  unravel_index = row({"index"}, "shape:sizes", {places = {"shape"}}),
  vsplit = row({"x"}, "parts:sizes", {places = {"parts"}}), vstack = row({"x"}, "", {list = true}),
  embedding_bag = row({"weight", "ids"}, "mode:choice padding_idx:int include_last_offset:flag",
    {named = {"offsets", "per_sample_weights"}}),
  grid_sample = row({"x", "grid"}, "mode:choice padding_mode:choice align_corners:flag"),
  interpolate = row({"x"}, "size:sizes scale_factor:number mode:choice align_corners:flag "
    .. "recompute_scale_factor:flag antialias:flag"),
  pixel_shuffle = row({"x"}, "upscale_factor:int", {places = {"upscale_factor"}}),
  pixel_unshuffle = row({"x"}, "downscale_factor:int", {places = {"downscale_factor"}}),
  trace = row({"x"}, ""),
  bilinear = row({"x1", "x2", "weight", "bias"}, ""),
  triplet_margin_with_distance_loss = row({"anchor", "positive", "negative"},
    "margin:number swap:flag reduction:choice",
    {unsampled = "spec/ops/dropouts_spec.lua"}),
  local_response_norm = row({"x"}, "size:int alpha:number beta:number k:number"),
  pairwise_distance = row({"x1", "x2"}, "p:number eps:number keepdim:flag"),
  index_copy = row({"x", "index", "source"}, "dim:dim", {dim_first = true}),
  index_fill = row({"x", "index", "value"}, "dim:dim", {dim_first = true, number = true}),
  index_put = row({"x"}, "", {unsampled = "spec/ops/positions_spec.lua"}),
  take = row({"x", "index"}, ""),
  put = row({"x", "index", "source"}, "accumulate:flag", {places = {"accumulate"}}),
  select_scatter = row({"x", "source"}, "dim:dim index:pos"),
  diagonal_scatter = row({"x", "source"}, "offset:int dim1:dim dim2:dim"),
  ["linalg.matrix_exp"] = row({"A"}, ""),
  ["linalg.lu"] = row({"A"}, "pivot:flag"),
  ["linalg.lu_factor"] = row({"A"}, "pivot:flag"),
  ["linalg.lu_solve"] = row({"LU", "pivots", "B"}, "left:flag adjoint:flag"),
  mm = row({"a", "b"}, ""), mv = row({"a", "b"}, ""), inner = row({"a", "b"}, ""),
  addmv = row({"x", "a", "b"}, "beta:number alpha:number"),
  addr = row({"x", "a", "b"}, "beta:number alpha:number"),
  addbmm = row({"x", "a", "b"}, "beta:number alpha:number"),
  pdist = row({"x"}, "p:number"),
  renorm = row({"x"}, "p:number dim:dim maxnorm:number",
    {unsampled = "spec/ops/distances_spec.lua"}),
  ["linalg.vander"] = row({"x"}, "N:int", {places = {"N"}}),
  ["linalg.tensorinv"] = row({"A"}, "ind:int", {unsampled = "spec/linalg/linalg_spec.lua"}),
  ["linalg.tensorsolve"] = row({"A", "B"}, "dims:dims"),
  ["fft.hfft"] = row({"x"}, "n:int dim:dim norm:choice", {pairs = true}),
  ["fft.ihfft"] = row({"x"}, "n:int dim:dim norm:choice"),
  ["fft.fft2"] = row({"x"}, "s:sizes dims:dims norm:choice", {pairs = true}),
  ["fft.ifft2"] = row({"x"}, "s:sizes dims:dims norm:choice", {pairs = true}),
  ["fft.rfft2"] = row({"x"}, "s:sizes dims:dims norm:choice"),
  ["fft.irfft2"] = row({"x"}, "s:sizes dims:dims norm:choice", {pairs = true}),
  ["fft.hfft2"] = row({"x"}, "s:sizes dims:dims norm:choice", {pairs = true}),
  ["fft.ihfft2"] = row({"x"}, "s:sizes dims:dims norm:choice"),
  ["fft.fftn"] = row({"x"}, "s:sizes dims:dims norm:choice", {pairs = true}),
  ["fft.ifftn"] = row({"x"}, "s:sizes dims:dims norm:choice", {pairs = true}),
  ["fft.rfftn"] = row({"x"}, "s:sizes dims:dims norm:choice"),
  ["fft.irfftn"] = row({"x"}, "s:sizes dims:dims norm:choice", {pairs = true}),
  ["fft.hfftn"] = row({"x"}, "s:sizes dims:dims norm:choice", {pairs = true}),
  ["fft.ihfftn"] = row({"x"}, "s:sizes dims:dims norm:choice"),
  polygamma = row({"x"}, "n:int", {places = {"n"}}),
  mvlgamma = row({"x"}, "p:int", {places = {"p"}}),
  frexp = row({"x"}, ""), nextafter = row({"x", "y"}, ""), logdet = row({"A"}, ""),
  histogram = row({"x", "bins"}, "density:flag", {named = {"weight"}, number = true}),
  histogramdd = row({"x"}, "bins:sizes density:flag", {places = {"bins"}, named = {"weight"},
    unsampled = "spec/ops/histogram_spec.lua"}),
  pinverse = row({"A"}, "rcond:number"), cholesky_inverse = row({"L"}, "upper:flag",
    {unsampled = "spec/linalg/checked_spec.lua"}),
  cholesky_solve = row({"B", "L"}, "upper:flag", {unsampled = "spec/linalg/checked_spec.lua"}),
  triangular_solve = row({"B", "A"}, "upper:flag transpose:flag unitriangular:flag"),
  lu = row({"A"}, "pivot:flag get_infos:flag"), lu_solve = row({"B", "LU_data", "LU_pivots"}, ""),
  lu_unpack = row({"LU_data", "LU_pivots"}, "unpack_data:flag unpack_pivots:flag"),
  geqrf = row({"A"}, ""), ormqr = row({"A", "tau", "other"}, "left:flag transpose:flag"),
  orgqr = row({"A", "tau"}, "", {unsampled = "spec/linalg/checked_spec.lua"}),
  ["linalg.cholesky_ex"] = row({"A"}, "upper:flag"), ["linalg.inv_ex"] = row({"A"}, ""),
  ["linalg.solve_ex"] = row({"A", "B"}, "left:flag"),
  ["linalg.lu_factor_ex"] = row({"A"}, "pivot:flag"),
  ["linalg.householder_product"] = row({"A", "tau"}, ""),
  ["linalg.matrix_sqrth"] = row({"A"}, ""), ["linalg.polar"] = row({"A"}, ""),
  argwhere = row({"x"}, ""), nonzero_static = row({"x"}, "size:int fill_value:int"),
}

for _, name in ipairs{"chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
  "chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
  "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t",
  "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
  "shifted_chebyshev_polynomial_w"} do
  rows["special." .. name] = row({"x", "n"}, "", {number = true})
end
for _, name in ipairs{"bartlett", "blackman", "cosine", "exponential", "gaussian",
  "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"} do
  rows["signal.windows." .. name] = row({}, "M:int sym:flag center:number tau:number std:number "
    .. "a:numbers alpha:number beta:number dtype:name", {places = {"M"}})
end

return rows
