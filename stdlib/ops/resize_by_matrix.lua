-- stdlib/ops/resize_by_matrix.lua: linear and cubic interpolation along one dim, as a product with
-- a matrix of weights.
--
-- Row o of the matrix has the weights of the inputs that output o is made of, a run of them. A dim
-- of more than LONG inputs is computed in parts of outputs, each of the inputs that it needs: the
-- work is in proportion to the size then.

local c = require "ltrain.c"

local LONG <const>, PART <const> = 256, 128

local resize_by_matrix = {}

-- The weights of taps `t` inputs away, Keys: Cubic convolution interpolation, 1981.
local function cubic(t, a)
  t = math.abs(t)
  if t <= 1 then return ((a + 2) * t - (a + 3)) * t * t + 1 end
  return t < 2 and (((t - 5) * t + 8) * t - 4) * a or 0
end

local function triangle(t) return math.max(0, 1 - math.abs(t)) end

-- How far apart the inputs of neighbouring outputs are.
local function step_of(n, m, scale, align_corners)
  if align_corners then return m > 1 and (n - 1) / (m - 1) or 0 end
  return scale and 1 / scale or n / m
end

local function source(step, at, align_corners)
  return align_corners and step * at or step * (at + 0.5) - 0.5
end

-- Rows {first input, weights ...}; inputs count from 0.
local function linear_rows(n, m, step, align_corners)
  local rows = {}
  for o = 0, m - 1 do
    local at = n == m and o or math.max(source(step, o, align_corners), 0)
    local first = math.min(math.floor(at), n - 1)
    local part = math.min(at - first, 1)
    rows[o + 1] = first < n - 1 and { first, 1 - part, part } or { first, 1 }
  end
  return rows
end

-- What is outside is the nearest input.
local function cubic_rows(n, m, step, align_corners)
  local rows = {}
  for o = 0, m - 1 do
    local at = source(step, o, align_corners)
    local first = math.max(0, math.min(math.floor(at) - 1, n - 1))
    local row = { first }
    for k = math.floor(at) - 1, math.floor(at) + 2 do
      local place = math.max(0, math.min(k, n - 1)) - first + 2
      row[place] = (row[place] or 0) + cubic(k - at, -0.75)
    end
    rows[o + 1] = row
  end
  return rows
end

-- Of windows as wide as an output is in the input, where that is more than one.
local function smooth_rows(n, m, step, reach, weight)
  local rows, wide = {}, math.max(step, 1)
  for o = 0, m - 1 do
    local centre = step * (o + 0.5)
    local first = math.max(math.floor(centre - reach * wide + 0.5), 0)
    local row, total = { first }, 0
    for k = first, math.min(math.floor(centre + reach * wide + 0.5), n) - 1 do
      row[#row + 1] = weight((k - centre + 0.5) / wide)
      total = total + row[#row]
    end
    for k = 2, #row do row[k] = row[k] / total end
    rows[o + 1] = row
  end
  return rows
end

--- The weights of n inputs in m outputs, by "linear" or "cubic"; `scale`: the factor between the
--- sizes where it is not m / n.
function resize_by_matrix.rows(n, m, kind, options, scale)
  local align <const> = options.align_corners
  local step <const> = step_of(n, m, scale, align)
  if options.antialias then
    if kind == "linear" then return smooth_rows(n, m, step, 1, triangle) end
    return smooth_rows(n, m, step, 2, function(t) return cubic(t, -0.5) end)
  end
  return (kind == "linear" and linear_rows or cubic_rows)(n, m, step, align)
end

-- The matrix of rows `from` to `to`, [outputs, inputs] or its transpose, the first input and how
-- many there are.
local function matrix_of(rows, from, to, x, is_transposed)
  local low, high = math.huge, 0
  for o = from, to do
    low, high = math.min(low, rows[o][1]), math.max(high, rows[o][1] + #rows[o] - 2)
  end
  local lists, lines, columns = {}, to - from + 1, high - low + 1
  if is_transposed then lines, columns = columns, lines end
  for i = 1, lines do
    lists[i] = {}
    for k = 1, columns do lists[i][k] = 0 end
  end
  for o = from, to do
    for k = 2, #rows[o] do
      local place <const> = rows[o][1] - low + k - 1
      if is_transposed then lists[place][o - from + 1] = rows[o][k]
      else lists[o - from + 1][place] = rows[o][k] end
    end
  end
  return c.tensor(lists, { dtype = x.dtype, device = x.device }), low, high - low + 1
end

-- x [..., N, K] or, of its last dim, [..., N], by the rows.
local function product(x, dim, rows)
  local is_last <const>, n = dim == x.ndim, x.shape[dim]
  local size <const>, parts = n > LONG and PART or #rows, {}
  for from = 1, #rows, size do
    local to <const> = math.min(from + size - 1, #rows)
    local matrix <const>, low, count = matrix_of(rows, from, to, x, is_last)
    local part <const> = count < n and x:narrow(dim, low + 1, count) or x
    parts[#parts + 1] = is_last and part:matmul(matrix) or matrix:matmul(part)
  end
  return #parts > 1 and c.cat(parts, dim) or parts[1]
end

--- x with #rows elements along `dim`; dims after the next one are seen as one with it.
function resize_by_matrix.along(x, dim, rows)
  if dim >= x.ndim - 1 then return product(x, dim, rows) end
  local shape <const> = table.move(x.shape, 1, x.ndim, 1, {})
  local y <const> = product(x:flatten { start_dim = dim + 1, end_dim = x.ndim }, dim, rows)
  shape[dim] = #rows
  return y:reshape(shape)
end

return resize_by_matrix
