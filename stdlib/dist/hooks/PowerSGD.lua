--- stdlib/dist/hooks/PowerSGD.lua: sends gradients as products of two thin matrices (PowerSGD:
--- Vogels, Karimireddy, Jaggi 2019; PyTorch's powerSGD_hook).
--
-- A gradient M [rows, columns] of rows * columns elements is sent as P [rows, rank], then Q
-- [columns, rank]: one step of a power iteration, P = M Q summed over the ranks and orthogonalized,
-- Q = M^T P summed, M = P Q^T. The next step begins with this Q. Two messages a step: all P with
-- the gradients that are not worth it (vectors, small matrices), then all Q.
--
-- Sums over the ranks and Gram-Schmidt's order are fixed: all ranks get the same bits.
local Hook = require "ltrain.dist.hooks.Hook"
local c = require "ltrain.c"

local PowerSGD = Hook:extend("PowerSGD")

PowerSGD.name = "powerSGD"
PowerSGD.shared_fields = { "q" }

-- PyTorch's names of options.
local INSTEAD <const> = {
  matrix_approximation_rank = { instead = "rank" },
  start_powerSGD_iter = { instead = "start" },
  use_error_feedback = { instead = "error_feedback" },
  random_seed = { instead = "seed" },
}

PowerSGD.options = Hook.rows {
  rank = { type = "integer", default = 1, min = 1, doc = "columns of P and Q" },
  start = { type = "integer", default = 1000, min = 0,
    doc = "number of first steps whose gradients are not compressed" },
  min_compression_rate = { type = "number", default = 2, min = 0,
    doc = "a gradient that would not get so many times smaller is sent as it is" },
  warm_start = { type = "boolean", default = true,
    doc = "begin with the Q of the step before; false: with a random one" },
  seed = { type = "integer", default = 0, min = 0, doc = "seed of the first Q" },
}
for name, row in next, INSTEAD do PowerSGD.options[name] = row end

-- Smallest norm that is divided by; and the part of a column that is left beside rounding errors
-- when the columns before it are taken out.
local TINY <const> = 1e-37
local LEFT <const> = { f32 = 1e-5, f64 = 1e-12 }

-- Makes the columns of x [n, rank] orthonormal, in place (modified Gram-Schmidt). A column that
-- depends on those before it becomes zero: what rounding leaves of it has no direction.
local function orthogonalize(x)
  local rank, before = x.shape[2], x:square():sum(1):sqrt()
  for i = 1, rank do
    local column = x:narrow(2, i, 1)
    local norm = column:square():sum():sqrt()
    local is_new = norm:gt(before[i] * LEFT[x.dtype]):to(x.dtype)
    column:mul_(is_new / norm:clamp { min = TINY })
    if i < rank then
      local rest = x:narrow(2, i + 1, rank - i)
      rest:sub_(column * (column * rest):sum { dim = 1, keepdim = true })
    end
  end
end

-- A row of zeros like x, and its parts of the given shapes.
local function row_of(x, shapes)
  local count, parts, at = 0, {}, 1
  for _, shape in ipairs(shapes) do count = count + shape[1] * shape[2] end
  local row = c.zeros({ count }, { dtype = x.dtype, device = x.device })
  for i, shape in ipairs(shapes) do
    local n = shape[1] * shape[2]
    parts[i] = row:narrow(1, at, n):reshape(shape)
    at = at + n
  end
  return row, parts
end

-- Rows and columns of a gradient, and the rank that it is sent with; nil: it is sent as it is.
local function size_of(self, shape, count)
  if #shape < 2 or count == 0 then return nil end
  local rows = shape[1]
  local columns = count // rows
  local rank = math.min(rows, columns, self.rank)
  if (rows + columns) * rank * self.min_compression_rate >= count then return nil end
  return rows, columns, rank
end

-- What is sent of a bucket. `matrices`: { place = its number in the bucket, x = [rows, columns], p
-- =, q =, basis = the Q that the step begins with }; `whole`: { x =, sent = }.
local function make_layout(self, bucket, x)
  local layout, first, second = { matrices = {}, whole = {} }, {}, {}
  for i, view in ipairs(Hook.views(bucket, x)) do
    local rows, columns, rank = size_of(self, view.shape, view:numel())
    if rows then
      table.insert(layout.matrices, { place = i, x = view:reshape { rows, columns } })
      table.insert(first, #layout.matrices, { rows, rank })
      table.insert(second, { columns, rank })
    else
      table.insert(layout.whole, { x = view:reshape { view:numel() } })
      table.insert(first, { view:numel(), 1 })
    end
  end
  local ps, qs
  layout.first, ps = row_of(x, first)
  layout.second, qs = row_of(x, second)
  layout.kept = {}
  for k, matrix in ipairs(layout.matrices) do
    matrix.p, matrix.q = ps[k], qs[k]
    matrix.basis, matrix.kept = c.zeros_like(qs[k]), c.zeros_like(qs[k])
    layout.kept[matrix.place] = matrix.kept
  end
  for k, piece in ipairs(layout.whole) do
    piece.sent = ps[#layout.matrices + k]:reshape { piece.x:numel() }
  end
  return layout
end

-- The orthonormal Q that each product begins with.
local function begin(self, bucket, layout)
  local is_new = {}
  for _, i in ipairs(self:adopt(bucket, "q", layout.kept)) do is_new[i] = true end
  self.draw(self.seed, bucket.step, function()
    for _, matrix in ipairs(layout.matrices) do
      local kept = matrix.kept
      if is_new[matrix.place] or not self.warm_start then
        kept:copy_(c.randn(kept.shape, { dtype = kept.dtype, device = kept.device }))
      end
      matrix.basis:copy_(kept)
      orthogonalize(matrix.basis)
    end
  end)
end

-- What was not sent: of a matrix this rank's less its part of the sum.
local function left_of(layout, bucket, input, x, ranks)
  input:sub_(x / ranks)
  local views, is_matrix = Hook.views(bucket, input), {}
  for _, matrix in ipairs(layout.matrices) do is_matrix[matrix.place] = true end
  for i, view in ipairs(views) do
    if not is_matrix[i] then view:zero_() end
  end
  return input
end

function PowerSGD:compress(x, bucket, group)
  bucket.layout = bucket.layout or make_layout(self, bucket, x)
  local layout = bucket.layout
  local input = self.error_feedback and x:clone()
  begin(self, bucket, layout)
  for _, matrix in ipairs(layout.matrices) do
    matrix.p:copy_(matrix.x:matmul(matrix.basis))
  end
  for _, piece in ipairs(layout.whole) do piece.sent:copy_(piece.x) end
  self:all_reduce_(layout.first, group)
  for _, matrix in ipairs(layout.matrices) do
    orthogonalize(matrix.p)
    matrix.q:copy_(matrix.x:t():matmul(matrix.p))
  end
  if #layout.matrices > 0 then self:all_reduce_(layout.second, group) end
  for _, matrix in ipairs(layout.matrices) do
    matrix.x:copy_(matrix.p:matmul(matrix.q:t()))
  end
  for _, piece in ipairs(layout.whole) do piece.x:copy_(piece.sent) end
  return input and left_of(layout, bucket, input, x, self.ranks_of(group))
end

--- Keeps the Q that the next step begins with.
function PowerSGD:commit(bucket)
  for _, matrix in ipairs(bucket.layout.matrices) do matrix.kept:copy_(matrix.q) end
end

return PowerSGD
