-- spec/cuda/fft_spec.lua: Fourier transforms of a GPU against the CPU's.
local both = require "spec.cuda.both"
local lt = require "ltrain"

-- Powers of 2 in shared memory, others by sums; 4099 is left to the CPU.
local LENGTHS <const> = { 1, 2, 3, 5, 8, 31, 33, 64, 97, 256, 300, 1024 }
local BOUNDS <const> = { f32 = 2e-4, f64 = 1e-10 }

local function compare(what, bound, fn)
  lt.seed(3)
  local want = fn "cpu"
  lt.seed(3)
  local got = fn "cuda"
  for k, t in ipairs(want) do both.close(got[k], t, bound, ("%s: %d"):format(what, k)) end
end

-- A transform and its gradient by weights that differ.
local function results(fn, x)
  x = x:detach():requires_grad_()
  local y = fn(x)
  local w = (lt.arange(y:numel()):to(y.dtype) * 0.37):sin():reshape(y.shape):to(y.device)
  y:backward(w)
  return { y:detach(), x.grad }
end

describe("fft on cuda", function()
  for dtype, bound in pairs(BOUNDS) do
    both.it("transforms any length as the CPU does in " .. dtype, function()
      for _, n in ipairs(LENGTHS) do
        compare("fft " .. n, bound, function(device)
          return results(lt.fft.fft, lt.randn(3, n, 2):to(dtype):to(device))
        end)
        compare("rfft " .. n, bound, function(device)
          return results(lt.fft.rfft, lt.randn(3, n):to(dtype):to(device))
        end)
        compare("irfft " .. n, bound, function(device)
          return results(function(x) return lt.fft.irfft(x, { n = n, norm = "ortho" }) end,
            lt.randn(3, n // 2 + 1, 2):to(dtype):to(device))
        end)
      end
    end)
  end

  both.it("takes strided lines, and none", function()
    compare("strided", 2e-4, function(device)
      local x = lt.randn(6, 5, 2):to(device)
      return { lt.fft.ifft(x, { dim = 1 }), lt.fft.rfft(x:select(-1, 1):t()),
        lt.fft.fft2(x), lt.fft.fft(x:narrow(1, 1, 0)) }
    end)
  end)

  both.it("leaves lines of more than 4096 to the CPU", function()
    compare("long", 1e-3, function(device)
      return { lt.fft.rfft(lt.randn(2, 4099):to(device)) }
    end)
  end)
end)
