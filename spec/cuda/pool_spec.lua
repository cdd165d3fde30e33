-- spec/cuda/pool_spec.lua: max_pool2d of a GPU against the CPU's, bit for bit.
local both = require "spec.cuda.both"
local lt = require "ltrain"

local CASES <const> = {
  { { 2, 3, 6, 6 }, { kernel_size = 2 } },
  { { 1, 1, 1, 1 }, { kernel_size = 1 } },
  { { 2, 5, 9, 7 }, { kernel_size = 3, stride = 2, padding = 1 } },
  { { 3, 2, 33, 17 }, { kernel_size = 3, stride = 1, padding = 1 } },
  { { 2, 3, 11, 13 }, { kernel_size = { 2, 5 }, stride = { 3, 1 }, padding = { 1, 2 } } },
  { { 2, 2, 20, 20 }, { kernel_size = 2, stride = 7 } }, -- pixels that no window sees
  { { 1, 3, 19, 18 }, { kernel_size = 17, stride = 1, padding = 8 } }, -- positions in i32
  { { 2, 4, 5, 6 }, { kernel_size = { 5, 6 } } },
  { { 0, 3, 6, 6 }, { kernel_size = 2 } },
  { { 2, 3, 11, 13 }, { kernel_size = { 3, 2 }, dilation = { 2, 5 }, stride = 2, padding = 1 } },
  { { 2, 3, 8, 9 }, { kernel_size = 3, stride = 2, padding = 1, ceil_mode = true } },
  { { 1, 2, 9, 9 }, { kernel_size = 2, dilation = 3, stride = 1, padding = 2 } },
}

local function last(t) return t:permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3) end
local function turned(t) return t:permute(4, 2, 3, 1):contiguous():permute(4, 2, 3, 1) end
local function plain(t) return t end

-- Few different values: equal ones meet in many windows.
local function random(size, dtype)
  if dtype == "u8" then return (lt.rand(size) * 5):to(dtype) end
  return (lt.randn(size) * 3):floor():to(dtype)
end

local function results(x, g, options, device, lay)
  options.return_indices = true
  local list = { lt.max_pool2d(lay(x:to(device)), options) }
  if g then
    local own = lay(x:to(device)):detach():requires_grad_()
    lt.max_pool2d(own, options):backward(lay(g:to(device)))
    list[#list + 1] = own.grad
  end
  return list
end

describe("max_pool2d on cuda", function()
  for _, dtype in ipairs { "f32", "f64", "f16", "bf16", "i64", "i32", "i16", "u8" } do
    both.it("gives the maxima and gradients of the CPU in " .. dtype, function()
      for k, case in ipairs(CASES) do
        lt.seed(k)
        local x, g = random(case[1], dtype), nil
        if dtype:find "f" then
          g = lt.randn(lt.max_pool2d(x, case[2]).shape):to(dtype)
        end
        for _, lay in ipairs { plain, last, turned } do
          both.same_on_both(("case %d"):format(k), function(device)
            return results(x, g, case[2], device, lay)
          end)
        end
      end
    end)
  end

  both.it("takes nan and infinities as the CPU does", function()
    local odd = lt.tensor { 0 / 0, -1 / 0, 1 / 0, -1 / 0, -1 / 0, 0 / 0, 3, -1 / 0, -0.0, 0.0 }
    local x = lt.stack({ odd, odd, odd }, { dim = 2 }):view(1, 1, 5, 6)
    local three = { kernel_size = 3, stride = 1, padding = 1 }
    for _, options in ipairs { { kernel_size = 2 }, three } do
      both.same_on_both("odd values", function(device)
        local g = lt.max_pool2d(x, options):zero_() + 1.5
        return results(x, g, options, device, plain)
      end)
    end
  end)
end)
