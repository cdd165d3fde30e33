-- spec/ops/halves_products.lua: large thin products of halves against the same in f64; run by
-- product_pieces_spec.lua here and, by a program of its own, on other levels of instructions.
local c = require "ltrain.c"
local lt = require "ltrain"

local ROUNDING <const> = { bf16 = 2 ^ -8, f16 = 2 ^ -11 }

local function turned(x) return x:transpose(1, 2) end
local function weight(g, x) return turned(g):matmul(x) end

-- What each is called, its function, the shapes of its arguments.
local CASES <const> = {
  { "columns", lt.linear, { 9, 500 }, { 600, 500 }, { 600 } },
  { "columns of one row", lt.linear, { 500 }, { 600, 500 }, { 600 } },
  { "terms on the right", lt.matmul, { 9, 600 }, { 600, 500 } },
  { "terms on the left", weight, { 600, 500 }, { 600, 5 } },
  { "rows on the left", lt.matmul, { 600, 500 }, { 500, 5 } },
  { "rows of a large result", weight, { 9, 500 }, { 9, 500 } },
  { "a result with a rest on both sides", weight, { 31, 517 }, { 31, 301 } },
  { "many terms", weight, { 128, 517 }, { 128, 301 } },
  { "one term", weight, { 1, 260 }, { 1, 390 } },
  { "few inputs", lt.linear, { 300, 33 }, { 333, 33 }, { 333 } },
  { "few inputs of a stack", lt.linear, { 3, 100, 33 }, { 333, 33 }, { 333 } },
  { "a stack of rows", lt.linear, { 2, 3, 500 }, { 600, 500 }, { 600 } },
  { "a vector on the right", lt.matmul, { 600, 500 }, { 500 } },
  { "a slice", function(a, y) return a:matmul(turned(y:narrow(2, 2, 450))) end, { 9, 450 },
    { 600, 500 } },
  { "a few rows, terms, columns", lt.linear, { 3, 40 }, { 21, 40 }, { 21 } },
  { "more rows than a tile has", lt.linear, { 29, 131 }, { 97, 131 } },
  { "many rows", lt.matmul, { 128, 333 }, { 333, 141 } },
  { "the last columns of a matrix", function(a, b) return a:matmul(b:narrow(2, 455, 46)) end,
    { 9, 130 }, { 130, 500 } },
  { "every other column", function(a, y) return a:matmul(y:unfold(2, 1, 2):squeeze(3)) end,
    { 300, 20 }, { 20, 500 } },
}

-- Draws arguments by `draw(shape)`; yields the name, the product in `dtype` and that in f64.
local function each(dtype, draw)
  local at = 0
  return function()
    at = at + 1
    local case = CASES[at]
    if not case then return end
    local own, exact = {}, {}
    for k = 3, #case do
      own[#own + 1] = draw(case[k]):to(dtype)
      exact[#exact + 1] = own[#own]:to "f64"
    end
    return case[1], case[2](table.unpack(own)), case[2](table.unpack(exact))
  end
end

local M <const> = {}

-- The cases of random numbers that are further off than one rounding, as text; "" when none is.
function M.off(dtype)
  local found = {}
  lt.seed(1)
  for name, got, want in each(dtype, function(shape) return lt.randn(shape) end) do
    local off = ((got:to "f64" - want):abs() - want:abs() * ROUNDING[dtype]):max():item()
    if got.dtype ~= dtype or off > 1e-3 or off ~= off then
      found[#found + 1] = ("%s of %s: off by %g"):format(name, dtype, off)
    end
  end
  return table.concat(found, "\n")
end

-- The cases of small integers, whose sums are exact, that are not the sums rounded once, half to
-- even.
function M.not_rounded(dtype)
  local found = {}
  for name, got, want in each(dtype, function(shape) return lt.randint(-9, 10, shape) end) do
    if not got:equal(want:to "f32":to(dtype)) then found[#found + 1] = name .. " of " .. dtype end
  end
  return table.concat(found, "\n")
end

-- The cases whose bits depend on the number of threads.
function M.by_threads(dtype)
  local found, before = {}, c.runtime.get_threads()
  local first = {}
  for threads = 1, 3 do
    c.runtime.set_threads(threads)
    lt.seed(1)
    for name, got in each(dtype, function(shape) return lt.randn(shape) end) do
      if not first[name] then first[name] = got end
      if not got:equal(first[name]) then found[#found + 1] = name .. " of " .. dtype end
    end
  end
  c.runtime.set_threads(before)
  return table.concat(found, "\n")
end

-- NaN and infinities among terms: where they get to, and with what sign.
function M.not_numbers(dtype)
  local x, g = lt.ones(8, 300), lt.ones(8, 300)
  x[{ 3, 7 }], x[{ 4, 9 }], x[{ 5, 11 }] = 0 / 0, math.huge, -math.huge
  local got = weight(g:to(dtype), x:to(dtype))
  local nan, up, down = got:isnan():sum(1):tolist(), got:eq(math.huge):sum(1):tolist(),
    got:eq(-math.huge):sum(1):tolist()
  return nan[7] == 300 and up[9] == 300 and down[11] == 300 and nan[8] == 0 and up[8] == 0
end

return M
