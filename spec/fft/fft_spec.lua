-- spec/fft/fft_spec.lua: lt.fft against the sums that define it; beside PyTorch: spec/parity.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local fft = lt.fft

local function numbers(...)
  local n = 1
  for _, size in ipairs{...} do n = n * size end
  return (lt.arange(n):to("f64") * 0.77 + 0.2):sin():reshape{...}
end

-- The sums themselves: x [N, 2] times e^(sign 2 pi i j k / N).
local function by_sums(x, sign)
  local n, list = x.shape[1], x:tolist()
  local y = {}
  for k = 0, n - 1 do
    local re, im = 0, 0
    for j = 0, n - 1 do
      local angle = sign * 2 * math.pi * ((j * k) % n) / n
      local c, s = math.cos(angle), math.sin(angle)
      re = re + list[j + 1][1] * c - list[j + 1][2] * s
      im = im + list[j + 1][1] * s + list[j + 1][2] * c
    end
    y[k + 1] = {re, im}
  end
  return lt.tensor(y, {dtype = "f64"})
end

local function near(want, got, bound)
  assert.same(want.shape, got.shape)
  local d = (want - got):abs():amax():item()
  assert(d <= (bound or 1e-11), ("differs by %g"):format(d))
end
local function checks(f, x) assert.is_true(lt.gradcheck(f, x:detach():requires_grad_())) end

local LENGTHS <const> = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 15, 16, 17, 20, 26, 27, 32, 49, 60, 64, 75,
  97}

describe("fft.fft and ifft", function()
  it("are the sums of any length", function()
    for _, n in ipairs(LENGTHS) do
      local x = numbers(n, 2)
      near(by_sums(x, -1), fft.fft(x))
      near(by_sums(x, 1) / n, fft.ifft(x))
      near(x, fft.ifft(fft.fft(x)))
    end
  end)

  it("work in f32, along other dims, cut or filled, and with other norms", function()
    local x = numbers(2, 6, 3, 2)
    near(fft.fft(x), fft.fft(x:to "f32"):to "f64", 1e-5)
    near(fft.fft(x:transpose(2, 3)):transpose(2, 3), fft.fft(x, {dim = 2}))
    near(fft.fft(x:narrow(3, 1, 2)), fft.fft(x, {n = 2}))
    local zeros = lt.zeros({2, 6, 2, 2}, {dtype = "f64"})
    near(fft.fft(lt.cat({x, zeros}, 3)), fft.fft(x, {n = 5}))
    near(fft.fft(x) / math.sqrt(3), fft.fft(x, {norm = "ortho"}))
    near(fft.fft(x) / 3, fft.fft(x, {norm = "forward"}))
    near(fft.ifft(x) * 3, fft.ifft(x, {norm = "forward"}))
  end)
end)

describe("fft.rfft and irfft", function()
  it("are the first half, and back", function()
    for _, n in ipairs(LENGTHS) do
      local x = numbers(3, n)
      local whole = fft.fft(lt.stack({x, lt.zeros_like(x)}, -1))
      near(whole:narrow(2, 1, n // 2 + 1), fft.rfft(x))
      near(x, fft.irfft(fft.rfft(x), {n = n}))
    end
    assert.same({2, 6}, fft.irfft(numbers(2, 4, 2)).shape)
  end)

  it("leave out what a real line cannot have", function()
    local x = numbers(4, 2) -- the first and the last number of 6 are real
    local y = x:clone()
    y[1][2], y[4][2] = 0, 0
    near(fft.irfft(y), fft.irfft(x))
  end)

  it("take integers, and strided lines", function()
    near(fft.rfft(lt.tensor{1.0, 2, 3, 4}), fft.rfft(lt.tensor{1, 2, 3, 4}))
    local x = numbers(5, 8)
    near(fft.rfft(x:t():contiguous()), fft.rfft(x:t()))
    near(fft.rfft(x, {dim = 1}), fft.rfft(x:t()):movedim(2, 1):movedim(2, 2))
  end)

  it("have derivatives of both orders", function()
    for _, n in ipairs{1, 2, 5, 6, 7} do
      checks(fft.rfft, numbers(2, n))
      checks(function(x) return fft.irfft(x, {n = n}) end, numbers(n // 2 + 1, 2))
      checks(fft.fft, numbers(n, 2))
      checks(fft.ifft, numbers(2, n, 2))
      assert.is_true(lt.gradgradcheck(function(x) return fft.rfft(x:sin()) end,
        numbers(n):requires_grad_()))
    end
  end)
end)

describe("fft.fft2 and its kin", function()
  it("are one dim after the other", function()
    local x = numbers(2, 4, 6)
    near(fft.fft(fft.rfft(x), {dim = 2}), fft.rfft2(x))
    near(x, fft.irfft2(fft.rfft2(x)))
    local y = numbers(2, 4, 3, 2)
    near(fft.fft(fft.fft(y), {dim = 2}), fft.fft2(y))
    near(y, fft.ifft2(fft.fft2(y)))
    near(fft.rfft2(x:narrow(2, 1, 3)), fft.rfft2(x, {s = {3, 6}}))
  end)
end)

describe("frequencies", function()
  it("are those of fft and rfft", function()
    assert.same({0, 0.25, -0.5, -0.25}, fft.fftfreq(4):tolist())
    near(lt.tensor({0, 0.4, 0.8, -0.8, -0.4}, {dtype = "f64"}), fft.fftfreq(5, {d = 0.5,
      dtype = "f64"}))
    assert.same({0, 0.25, 0.5}, fft.rfftfreq(4):tolist())
    assert.same({-2, -1, 0, 1}, fft.fftshift(lt.tensor{0, 1, -2, -1}):tolist())
    local x = numbers(5, 3)
    near(x, fft.ifftshift(fft.fftshift(x)))
  end)
end)

describe("windows", function()
  it("are raised cosines", function()
    near(lt.tensor{0, 0.5, 1, 0.5}, lt.hann_window(4), 1e-7)
    near(lt.tensor{0, 0.75, 0.75, 0}, lt.hann_window(4, {periodic = false}), 1e-7)
    near(lt.tensor{0.08, 0.54, 1, 0.54}, lt.hamming_window(4), 1e-7)
    assert.same({1}, lt.hann_window(1):tolist())
  end)
end)

describe("stft and istft", function()
  it("are rfft of windows, and back", function()
    local x = numbers(2, 20)
    local w = lt.hann_window(8, {dtype = "f64"})
    local y = lt.stft(x, 8, {hop_length = 2, window = w, center = false})
    assert.same({2, 5, 7, 2}, y.shape)
    near(fft.rfft(x:narrow(2, 5, 8) * w), y:select(3, 3))
    local z = lt.stft(x, 8, {hop_length = 2, window = w})
    near(x, lt.istft(z, 8, {hop_length = 2, window = w, length = 20}))
    near(x[1], lt.istft(z[1], 8, {hop_length = 2, window = w, length = 20}))
    local whole = lt.stft(x, 8, {hop_length = 2, window = w, onesided = false, normalized = true})
    near(x, lt.istft(whole, 8, {hop_length = 2, window = w, onesided = false, normalized = true,
      length = 20}))
  end)

  it("continue the signal as told", function()
    local x = lt.arange(6):to "f64"
    local function first(mode) return lt.stft(x, 4, {pad_mode = mode}):select(2, 1) end
    near(fft.rfft(lt.tensor({2, 1, 0, 1}, {dtype = "f64"})), first "reflect")
    near(fft.rfft(lt.tensor({0, 0, 0, 1}, {dtype = "f64"})), first "replicate")
    near(fft.rfft(lt.tensor({4, 5, 0, 1}, {dtype = "f64"})), first "circular")
  end)

  it("have derivatives", function()
    local w = lt.hann_window(6, {dtype = "f64"})
    local o = {hop_length = 2, window = w}
    checks(function(x) return lt.stft(x, 6, o) end, numbers(14))
    checks(function(x) return lt.istft(x, 6, o) end, numbers(4, 5, 2))
  end)

  it("refuse what does not fit", function()
    assert.matches("stft: needs [T] or [B, T], got [2, 3, 4]",
      error_of(lt.stft, numbers(2, 3, 4), 2), 1, true)
    assert.matches("stft: the window must have win_length = 4 values: got [3]",
      error_of(lt.stft, numbers(9), 4, {window = numbers(3)}), 1, true)
    assert.matches("stft: 3 samples cannot be continued by 4: pad_mode = 'constant'",
      error_of(lt.stft, numbers(3), 8), 1, true)
    assert.matches("istft: n_fft = 8 needs [.., 5, L, 2], got [4, 3, 2]",
      error_of(lt.istft, numbers(4, 3, 2), 8), 1, true)
    assert.matches("fft.rfft: needs f32 or f64, got f16",
      error_of(fft.rfft, numbers(4):to "f16"), 1, true)
    assert.matches("fft.fft: needs [.., N, 2], real and imaginary parts in the last dim, got [4]",
      error_of(fft.fft, numbers(4)), 1, true)
    assert.matches("fft.fft: dim 3 is out of 1..1 of [4, 2]",
      error_of(fft.fft, numbers(4, 2), {dim = 3}), 1, true)
  end)
end)

describe("fft.fftn and its kin", function()
  local x = (lt.arange(24, {dtype = "f64"}) * 0.7):sin():reshape(2, 3, 4)

  it("are transforms of each dim", function()
    local full = fft.fftn(lt.stack({x, x * 0}, 4))
    near(fft.rfftn(x), full:narrow(3, 1, 3))
    near(x, fft.ifftn(full):select(4, 1))
    near(x, fft.irfftn(fft.rfftn(x)))
    near(fft.rfft2(x), fft.rfftn(x, {dims = {-2, -1}}))
    near(fft.rfft2(x, {s = {3, 6}}), fft.rfftn(x, {s = {3, 6}}))
    near(x, fft.hfftn(fft.ihfftn(x)))
    near(x, fft.hfft2(fft.ihfft2(x)))
  end)

  it("of Hermitian halves are real", function()
    local half = fft.ihfft(x)
    assert.same({2, 3, 3, 2}, half.shape)
    near(x, fft.hfft(half))
    near(fft.irfft(half * lt.tensor({1, -1}, {dtype = "f64"})) * 4, fft.hfft(half))
    near(fft.hfft(half, {norm = "ortho"}) * 2, fft.hfft(half))
  end)

  it("refuse dims that are not there, or twice", function()
    assert.matches("fft.fftn: dim 3 is out of 1..2 of %[2, 3, 2%]",
      error_of(fft.fftn, lt.ones(2, 3, 2), {dims = {3}}))
    assert.matches("fft.fft2: a dim must be an integer: got 'a'",
      error_of(fft.fft2, lt.ones(2, 3, 2), {dims = {"a", 1}}))
    assert.matches("fft.rfftn: dim %-1 is given twice", error_of(fft.rfftn, x, {dims = {3, -1}}))
    assert.matches("fft.rfftn: needs a dim, and a length for each: got 1 dims and 2 lengths",
      error_of(fft.rfftn, x, {dims = {3}, s = {1, 2}}))
  end)
end)
