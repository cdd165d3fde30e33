-- spec/bind/print_spec.lua: tostring reads as PyTorch prints; the expected texts are PyTorch's own.
local lt = require "ltrain"

local function prints(text, x) assert.equal(text, tostring(x)) end

describe("tostring of a tensor", function()
  it("shows numbers with one width", function()
    prints("tensor(3.)", lt.tensor(3.))
    prints("tensor(3.5000)", lt.tensor(3.5))
    prints("tensor(7)", lt.tensor(7))
    prints("tensor([1., 2.])", lt.tensor { 1., 2. })
    prints("tensor([  1.5000, -20.2500])", lt.tensor { 1.5, -20.25 })
    prints("tensor([1, 2, 3])", lt.tensor { 1, 2, 3 })
    prints("tensor([  1, -20, 300])", lt.tensor { 1, -20, 300 })
    prints("tensor([ True, False])", lt.tensor { true, false })
    prints("tensor([0., 0.])", lt.zeros(2))
    prints("tensor([0.1000, 0.0000])", lt.tensor { 0.1, 0. })
  end)

  it("lays dims out in lines", function()
    prints("tensor([[1., 2.],\n        [3., 4.]])", lt.tensor { {1., 2.}, {3., 4.} })
    prints("tensor([[[1, 2]],\n\n        [[3, 4]]])", lt.tensor { {{1, 2}}, {{3, 4}} })
  end)

  it("turns scientific when magnitudes differ by more than 1000", function()
    prints("tensor([1.0000e+00, 1.0000e+04])", lt.tensor { 1., 10000. })
    prints("tensor([1.0000e-05])", lt.tensor { 1e-5 })
    prints("tensor([   1., 1000.])", lt.tensor { 1., 1000. })
    prints("tensor([1.0000e+09])", lt.tensor { 1e9 })
    prints("tensor([1.5000e+00, 2.0000e+03])", lt.tensor { 1.5, 2000. })
  end)

  it("shows what is not finite", function()
    prints("tensor([inf, nan, -inf])", lt.tensor { 1 / 0, 0 / 0, -1 / 0 })
    prints("tensor([1.5000,    inf,    nan])", lt.tensor { 1.5, 1 / 0, 0 / 0 })
    prints("tensor([1., inf])", lt.tensor { 1., 1 / 0 })
  end)

  it("names what is not the default", function()
    prints("tensor([1.], dtype=float64)", lt.tensor({1.}, {dtype = "f64"}))
    prints("tensor([1, 2], dtype=uint8)", lt.tensor({1, 2}, {dtype = "u8"}))
    prints("tensor([1.5000], dtype=bfloat16)", lt.tensor({1.5}, {dtype = "bf16"}))
    prints("tensor([1.], requires_grad=True)", lt.ones(1, {requires_grad = true}))
    prints("tensor([2.], grad_fn=<MulBackward>)", lt.ones(1, {requires_grad = true}) * 2)
    prints("tensor([1.], device='fake:0')", lt.ones(1):to("fake"))
    prints("tensor([1.], dtype=float64, requires_grad=True)",
      lt.ones(1, {dtype = "f64", requires_grad = true}))
  end)

  it("shows the shape of what is empty", function()
    prints("tensor([])", lt.empty(0))
    prints("tensor([], size=(0, 3))", lt.empty(0, 3))
    prints("tensor([], dtype=int64)", lt.empty(0, {dtype = "i64"}))
  end)

  it("breaks lines at 80 columns", function()
    prints([=[
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])]=], lt.arange(30))
    prints([=[
tensor([[ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,
         14., 15., 16., 17., 18., 19.],
        [20., 21., 22., 23., 24., 25., 26., 27., 28., 29., 30., 31., 32., 33.,
         34., 35., 36., 37., 38., 39.]])]=], lt.arange(40.):view(2, 20))
  end)

  it("keeps closing brackets within 80 columns", function()
    for _, shape in ipairs { { 16 }, { 3, 16 }, { 3, 40 }, { 2, 3, 16 }, { 2, 2, 2, 24 } } do
      for line in tostring(lt.full(shape, 0.25) - 1):gmatch "[^\n]+" do
        assert.is_true(#line <= 80, line)
      end
    end
  end)

  it("cuts long dims to their ends when there are more than 1000 elements", function()
    prints("tensor([   0,    1,    2,  ..., 1998, 1999, 2000])", lt.arange(2001))
    prints([=[
tensor([[   0,    1,    2,  ...,   37,   38,   39],
        [  40,   41,   42,  ...,   77,   78,   79],
        [  80,   81,   82,  ...,  117,  118,  119],
        ...,
        [1080, 1081, 1082,  ..., 1117, 1118, 1119],
        [1120, 1121, 1122,  ..., 1157, 1158, 1159],
        [1160, 1161, 1162,  ..., 1197, 1198, 1199]])]=], lt.arange(1200):view(30, 40))
    local ends = lt.arange(6):view(3, 2)
    prints([=[
tensor([[0, 1],
        [2, 3],
        [4, 5],
        ...,
        [0, 1],
        [2, 3],
        [4, 5]])]=], lt.cat({ends, lt.zeros(600, 2):long(), ends}))
  end)

  it("shows views in logical order", function()
    prints("tensor([[1, 3],\n        [2, 4]])", lt.tensor({{1, 2}, {3, 4}}):t())
  end)
end)
