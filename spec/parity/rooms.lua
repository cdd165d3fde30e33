-- spec/parity/rooms.lua: random calls of lt.linalg and lt.fft, for comparison with torch.linalg,
-- torch.fft and torch.stft.
--
-- A row returns the inputs, what follows them by place, and options. `made` (nil: as they are) says
-- what the first input becomes before the call, on both sides: matrices with a derivative that is
-- not near infinity. Signs that are arbitrary are multiplied away (SIGNLESS).
local lt = require "ltrain"
local make = require "spec.parity.inputs"
local written = require "spec.parity.written"

local one_of, random, wide = make.one_of, math.random, make.wide

local function flag() return one_of{true, false} end
local function batch() return one_of{{}, {}, {2}, {1, 2}} end
local function matrix(m, n, d, lead)
  local shape = lead or batch()
  shape = table.move(shape, 1, #shape, 1, {})
  shape[#shape + 1], shape[#shape + 2] = m, n
  return make.tensor(shape, {dtype = d or wide(), distinct = true})
end
local function vector(d, ...) return make.tensor({...}, {dtype = d or wide(), distinct = true}) end
local function size() return random(1, 4) end

local function row(inputs, args, options, made)
  return {inputs = inputs, args = args or {}, options = options or {}, made = made}
end
local function of_square(made, options)
  return function()
    local n = size()
    return row({matrix(n, n)}, nil, options and options(), made)
  end
end
local function of_any(made, options)
  return function() return row({matrix(size(), size())}, nil, options and options(), made) end
end

local ORDERS <const> = {"fro", "nuc", 1, -1, 2, -2, 1 / 0, -1 / 0}
local function order() return one_of(ORDERS) end

local function pairs_of(n) return vector(wide(), size(), n, 2) end
local function norm() return one_of{"backward", "ortho", "forward"} end
local LENGTHS <const> = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 30, 22, 64}
local function length() return one_of(LENGTHS) end

local function transform(complex)
  return function()
    local n, d = length(), wide()
    local x = complex and vector(d, 2, n, 2) or vector(d, 2, n)
    return row({x}, nil, {n = one_of{n, n + 1, nil}, norm = norm(), dim = -1})
  end
end
local function plane(complex)
  return function()
    local m, n, d = random(1, 6), random(2, 6), wide()
    local x = complex and vector(d, m, n, 2, 2) or vector(d, m, n, 2)
    return row({x}, nil, {norm = norm(), dims = {1, 2}})
  end
end
local function shift() return row({vector(nil, size(), size())}, nil, {dims = one_of{1, -1}}) end
local function frequencies()
  return row({}, {random(1, 9)}, {d = one_of{1, 0.25}, dtype = "f64"})
end
local function window() return row({}, {random(1, 9)}, {periodic = flag(), dtype = "f64"}) end

local ROWS <const> = {
  ["linalg.cholesky"] = of_square("positive", function() return {upper = flag()} end),
  ["linalg.eigh"] = of_square("symmetric", function() return {UPLO = one_of{"L", "U"}} end),
  ["linalg.eigvalsh"] = of_square("symmetric", function() return {UPLO = one_of{"L", "U"}} end),
  ["linalg.qr"] = function()
    local m, n = size(), size()
    local mode = m <= n and one_of{"reduced", "complete"} or "reduced"
    return row({matrix(m, n)}, nil, {mode = mode}, "apart")
  end,
  ["linalg.svd"] = of_any("apart", function() return {full_matrices = flag()} end),
  ["linalg.svdvals"] = of_any("apart"),
  ["linalg.det"] = of_square("apart"), ["linalg.slogdet"] = of_square("apart"),
  ["linalg.inv"] = of_square("apart"),
  ["linalg.solve"] = function()
    local n, d = size(), wide()
    local left, lead = flag(), batch()
    if random() < 0.3 then return row({matrix(n, n, d), vector(d, n)}, nil, {}, "apart") end
    local b = left and matrix(n, size(), d, lead) or matrix(size(), n, d, lead)
    return row({matrix(n, n, d), b}, nil, {left = left}, "apart")
  end,
  ["linalg.solve_triangular"] = function()
    local n, d, left = size(), wide(), flag()
    local b = left and matrix(n, size(), d) or matrix(size(), n, d)
    return row({matrix(n, n, d), b}, nil, {left = left, upper = flag(), unitriangular = flag()},
      "apart")
  end,
  ["linalg.pinv"] = of_any("apart"),
  ["linalg.matrix_rank"] = of_any("apart"),
  ["linalg.cond"] = function()
    local n = size()
    local x = matrix(n, n)
    x.fixed = true -- PyTorch's derivative is one of a tensor that it has overwritten
    return row({x}, {order()}, {}, "apart")
  end,
  ["linalg.lstsq"] = function()
    local m, n, d, lead = size(), size(), wide(), batch()
    return row({matrix(m, n, d, lead), matrix(m, size(), d, lead)}, nil, {}, "apart")
  end,
  ["linalg.norm"] = function()
    local kind = random(3)
    if kind == 1 then return row({matrix(size(), size(), nil, {})}, {order()}, {}, "apart") end
    if kind == 2 then return row({vector(nil, size(), size())}, nil, {}) end
    return row({vector(nil, size(), size())}, {one_of{1, 2, 3, 0, 1 / 0, -1 / 0}},
      {dim = one_of{1, -1}, keepdim = flag()})
  end,
  ["linalg.vector_norm"] = function()
    return row({vector(nil, size(), size(), 2)}, {one_of{1, 2, 3, 0, 0.5, -2, 1 / 0, -1 / 0}},
      {dim = one_of{1, -1, {1, 3}}, keepdim = flag()})
  end,
  ["linalg.matrix_norm"] = function()
    return row({matrix(size(), size(), nil, {2})}, {order()},
      {dim = one_of{{-2, -1}, {2, 3}, {-1, -2}}, keepdim = flag()}, "apart")
  end,
  ["linalg.matrix_power"] = function()
    local n = size()
    return row({matrix(n, n)}, {one_of{-2, -1, 1, 2, 3, 4}}, {}, "apart")
  end,
  ["linalg.multi_dot"] = function()
    local d, n, list = wide(), size(), {}
    for k = 1, random(2, 4) do
      local m = size()
      list[k], n = matrix(n, m, d, {}), m
    end
    if random() < 0.3 then list[#list + 1] = vector(d, n) end
    local c = row(list)
    c.list = true
    return c
  end,
  ["linalg.cross"] = function()
    local d, n = wide(), size()
    return row({vector(d, n, 3), vector(d, one_of{1, n}, 3)}, nil, {dim = one_of{-1, 2}})
  end,
  ["linalg.vecdot"] = function()
    local d, m, n = wide(), size(), size()
    return row({vector(d, m, n), vector(d, m, n)}, nil, {dim = one_of{1, -1}})
  end,
  ["linalg.diagonal"] = of_any(nil, function() return {offset = random(-1, 1)} end),
  ["fft.fft"] = transform(true), ["fft.ifft"] = transform(true), ["fft.rfft"] = transform(false),
  ["fft.irfft"] = function()
    local n = length()
    return row({pairs_of(n // 2 + 1)}, nil, {n = n, norm = norm(), dim = -1})
  end,
  ["fft.fft2"] = plane(true), ["fft.ifft2"] = plane(true), ["fft.rfft2"] = plane(false),
  ["fft.irfft2"] = plane(true),
  ["fft.fftshift"] = shift, ["fft.ifftshift"] = shift,
  ["fft.fftfreq"] = frequencies, ["fft.rfftfreq"] = frequencies,
  ["fft.hann_window"] = window, ["fft.hamming_window"] = window,
  ["fft.stft"] = function()
    local n, d = one_of{4, 5, 6, 8}, wide()
    return row({vector(d, 2, random(12, 20)), vector(d, n)}, {n},
      {hop_length = random(1, 4), center = flag(), normalized = flag(), onesided = flag(),
        pad_mode = one_of{"reflect", "constant", "replicate", "circular"}})
  end,
  ["fft.istft"] = function()
    local n, d = one_of{4, 5, 6, 8}, wide()
    local w = make.tensor({n}, {dtype = d, low = 1, high = 3, distinct = true})
    w.fixed = true
    return row({vector(d, 2, n // 2 + 1, random(4, 7), 2), w}, {n},
      {hop_length = random(1, n // 2), normalized = flag()})
  end,
}

local M = {except = {}}

function M.names()
  local have, lack = {}, {}
  for _, room in ipairs{"linalg", "fft"} do
    for _, name in pairs(lt[room]) do
      local full = room .. "." .. name
      local list = ROWS[full] and have or not written[full] and lack
      if list then list[#list + 1] = full end
    end
  end
  return have, lack
end

function M.draw(name)
  local case = ROWS[name]()
  case.room = name
  return case
end

local function diagonal(x, by)
  local m, n = x.shape[x.ndim - 1], x.shape[x.ndim]
  local k = lt.arange(1, math.max(m, n) + 1):to(x.dtype) * by
  return lt.diag(k):narrow(1, 1, m):narrow(2, 1, n)
end

local MADE <const> = {
  apart = function(x) return x + diagonal(x, 8) end,
  positive = function(x) return x:matmul(x:transpose(-2, -1)) + diagonal(x, 1) end,
  symmetric = function(x) return x + x:transpose(-2, -1) + diagonal(x, 8) end,
}

-- V diag(1, 2, ...) V^T and its like: the same for any signs.
local function joined(U, Vh)
  local k = math.min(U.shape[U.ndim], Vh.shape[Vh.ndim - 1])
  U, Vh = U:narrow(-1, 1, k), Vh:narrow(-2, 1, k)
  return (U * lt.arange(1, k + 1):to(U.dtype)):matmul(Vh)
end
local SIGNLESS <const> = {
  ["linalg.eigh"] = function(w, V) return {joined(V, V:transpose(-2, -1)), w} end,
  ["linalg.svd"] = function(U, S, Vh) return {joined(U, Vh), S} end,
}

-- The window of a spectrogram stands among the inputs of a case.
local function with_window(case, inputs)
  if case.room ~= "fft.stft" and case.room ~= "fft.istft" then return inputs, case.options end
  local options = {}
  for name, value in pairs(case.options) do options[name] = value end
  options.window = inputs[2]
  return {inputs[1]}, options
end

function M.run(case, tools)
  local leaves, inputs = {}, {}
  for k, x in ipairs(case.inputs) do
    leaves[k] = tools.build(x)
    if tools.differentiable(case, x) then leaves[k]:requires_grad_() end
    inputs[k] = leaves[k]
  end
  if case.made then inputs[1] = MADE[case.made](inputs[1]) end
  local room, name = case.room:match "^(%w+)%.(.*)$"
  local given, options = with_window(case, inputs)
  if case.list then given = {inputs} end
  for _, value in ipairs(case.args) do given[#given + 1] = value end
  if next(options) then given[#given + 1] = options end
  local results = {lt[room][name](table.unpack(given))}
  if SIGNLESS[case.room] then results = SIGNLESS[case.room](table.unpack(results)) end
  return tools.answer(case, results, leaves)
end

return M
