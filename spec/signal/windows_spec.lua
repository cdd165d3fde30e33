-- spec/signal/windows_spec.lua: lt.signal.windows against their formulas; beside PyTorch:
-- spec/parity.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local windows = lt.signal.windows

local function i0(x)
  local sum, term = 1, 1
  for k = 1, 60 do
    term = term * x * x / (4 * k * k)
    sum = sum + term
  end
  return sum
end
local function cosines(...)
  local a = {...}
  return function(k, n)
    local y = 0
    for j = 1, #a do y = y + (-1) ^ (j - 1) * a[j] * math.cos(2 * math.pi * (j - 1) * k / n) end
    return y
  end
end

-- f(k, n): k = 0..M - 1, n = M - 1 of a symmetric window, M of a periodic one.
local FORMULAS <const> = {
  bartlett = function(k, n) return 1 - math.abs(2 * k / n - 1) end,
  blackman = cosines(0.42, 0.5, 0.08), hann = cosines(0.5, 0.5), hamming = cosines(0.54, 0.46),
  nuttall = cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
  general_cosine = cosines(0.3, 0.5, 0.2), general_hamming = cosines(0.6, 0.4),
  cosine = function(k, n) return math.sin(math.pi * (k + 0.5) / (n + 1)) end,
  exponential = function(k, n) return math.exp(-math.abs(k - n / 2) / 1.5) end,
  gaussian = function(k, n) return math.exp(-((k - n / 2) / 2) ^ 2 / 2) end,
  kaiser = function(k, n) return i0(8 * math.sqrt(1 - (2 * k / n - 1) ^ 2)) / i0(8) end,
}
local OPTIONS <const> = { general_cosine = {a = {0.3, 0.5, 0.2}}, general_hamming = {alpha = 0.6},
  exponential = {tau = 1.5}, gaussian = {std = 2}, kaiser = {beta = 8} }

local function window(name, M, sym)
  local o = {sym = sym, dtype = "f64"}
  for key, value in pairs(OPTIONS[name] or {}) do o[key] = value end
  return windows[name](M, o)
end

describe("lt.signal.windows", function()
  it("has those that have a formula here, and no others", function()
    local names = {}
    for _, name in pairs(windows) do names[name] = true end
    for name in pairs(FORMULAS) do assert.is_true(names[name], name) end
    for name in pairs(names) do assert.is_function(FORMULAS[name], name) end
  end)

  for name, formula in pairs(FORMULAS) do
    it("." .. name .. " has its formula, symmetric and periodic", function()
      for _, M in ipairs{2, 5, 8} do
        for _, sym in ipairs{true, false} do
          local got = window(name, M, sym):tolist()
          for k = 1, M do
            local want = formula(k - 1, sym and M - 1 or M)
            assert(math.abs(want - got[k]) < 1e-14, ("%d of %d: %.17g"):format(k, M, got[k]))
          end
        end
      end
      assert.same({1}, window(name, 1, true):tolist())
      assert.same({0}, window(name, 0, true).shape)
    end)
  end

  it("is f32 and symmetric by default, and refuses what is not a window", function()
    assert.equal("f32", windows.hann(4).dtype)
    assert.same(lt.hann_window(6):tolist(), windows.hann(6, {sym = false}):tolist())
    local late = windows.exponential(4, {sym = false, center = 0, dtype = "f64"}):tolist()
    assert(math.abs(late[3] - math.exp(-2)) < 1e-15)
    assert.matches("exponential: center = 1 of a symmetric window",
      error_of(windows.exponential, 4, {center = 1}))
    assert.matches("general_cosine: a is empty", error_of(windows.general_cosine, 4, {a = {}}))
    assert.matches("gaussian: std", error_of(windows.gaussian, 4, {std = 0}))
    assert.matches("dtype", error_of(windows.hann, 4, {dtype = "i64"}))
  end)
end)
