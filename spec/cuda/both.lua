-- spec/cuda/both.lua: the same work on the CPU and on the device cuda, compared bit for bit.
local busted = require "busted"
local lt = require "ltrain"

local M = {}

local there, why = pcall(lt.zeros, { 1 }, { device = "cuda" })

--- A case that needs the device; pending with the reason where there is none.
function M.it(name, fn)
  if there then
    busted.it(name, fn)
  else
    busted.pending(("%s (%s)"):format(name, tostring(why):match("[^\n]*")))
  end
end

--- Fails unless both have one dtype, one shape and the same values, of which NaN equals NaN.
function M.same(got, want, what)
  local luassert = require "luassert"
  local a, b = got:to("cpu"), want:to("cpu")
  luassert.equal(b.dtype, a.dtype, what)
  luassert.same(b.shape, a.shape, what)
  if a:numel() == 0 then return end
  local x, y = a:to("f64"), b:to("f64")
  local equal = (x:eq(y) + x:ne(x) * y:ne(y)):to("f64"):sum():item()
  luassert.equal(a:numel(), equal, what)
end

--- Fails unless both have one dtype, one shape and, NaN where the other has it, values that differ
--- by at most `bound` of max(1, |value|), or of max(1, |scale|) where `scale` is given.
function M.close(got, want, bound, what, scale)
  local luassert = require "luassert"
  local a, b = got:to("cpu"), want:to("cpu")
  luassert.equal(b.dtype, a.dtype, what)
  luassert.same(b.shape, a.shape, what)
  if a:numel() == 0 then return end
  local x, y = a:to("f64"), b:to("f64")
  M.same(x:ne(x), y:ne(y), what)
  x, y = x:masked_fill(x:ne(x), 0), y:masked_fill(y:ne(y), 0)
  scale = (scale and scale:to("f64") or y):abs():clamp(1)
  local off = lt.where(x:eq(y), 0, (x - y):abs() / scale):max():item()
  luassert.is_true(off <= bound, ("%s: off by %g"):format(what, off))
end

--- fn("cuda") must be fn("cpu"), each with the same random numbers: tensors, or lists of them.
function M.same_on_both(what, fn)
  lt.seed(7)
  local want = fn("cpu")
  lt.seed(7)
  local got = fn("cuda")
  if lt.is_tensor(want) then return M.same(got, want, what) end
  for k, t in ipairs(want) do M.same(got[k], t, ("%s: %d"):format(what, k)) end
end

return M
