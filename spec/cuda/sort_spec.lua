-- spec/cuda/sort_spec.lua: orders of a GPU are the CPU's, equal elements and NaN too.
-- tags: threads, kernels
local both = require "spec.cuda.both"
local lt = require "ltrain"

local inf <const>, nan <const> = math.huge, 0 / 0
local ODD <const> = { nan, inf, -inf, 0.0, -0.0, nan }

local DTYPES <const> = { "f32", "f64", "f16", "bf16", "i64", "i32", "u8", "i16", "u16", "bool" }

-- Few different values, so that many are equal; floats with odd ones among them.
local function values(size, dtype)
  local x = lt.randint(-4, 5, size)
  if dtype == "f32" or dtype == "f64" or dtype == "f16" or dtype == "bf16" then
    local odd = lt.tensor(ODD):index_select(1, lt.randint(0, #ODD, { x:numel() })):reshape(size)
    return lt.where(lt.rand(size):lt(0.4), odd, x:to("f32")):to(dtype)
  end
  return dtype == "bool" and x:gt(0) or (dtype == "u8" or dtype == "u16") and x:abs():to(dtype)
    or x:to(dtype)
end

local function orders(x)
  local n = x.shape[2]
  local best, best_at = x:topk(n // 3 + 1, 2)
  local least, least_at = x:topk(n, { dim = 2, largest = false })
  return { x:argsort(1), best, best_at, least, least_at }
end

describe("cuda orders", function()
  for _, n in ipairs { 1, 32, 33 } do
    both.it(("lines of %d"):format(n), function()
      for _, dtype in ipairs(n < 33 and DTYPES or { "f32", "i64" }) do
        both.same_on_both(dtype, function(device)
          return orders(values({ 3, n }, dtype):to(device))
        end)
      end
    end)
  end

  -- A block, several tiles.
  for _, n in ipairs { 2048, 2049 } do
    both.it(("lines of %d"):format(n), function()
      both.same_on_both("u8", function(device)
        return { values({ 2, n }, "u8"):to(device):sort(2) }
      end)
      both.same_on_both("bf16", function(device)
        return { values({ n }, "bf16"):to(device):topk(n - 1, 1) }
      end)
    end)
  end

  both.it("the first of many long lines, which are not sorted whole", function()
    for dtype, k in pairs { f64 = 1, u8 = 40 } do
      both.same_on_both(dtype, function(device)
        local x = values({ 16, 2049 }, dtype):to(device)
        return { x:topk(k, { dim = 2, largest = dtype == "f64" }) }
      end)
    end
  end)

  both.it("the whole range of integers", function()
    both.same_on_both("i64", function(device)
      local most, least <const> = math.maxinteger, math.mininteger
      local x = lt.tensor({ most, least, 0, -1, 1, least + 1, most }, { dtype = "i64" }):to(device)
      return { x:sort(1) }
    end)
  end)

  both.it("nothing, and one number", function()
    both.same_on_both("empty", function(device)
      local x = lt.zeros({ 3, 0 }, { device = device })
      local a, b = x:topk(0, 2)
      local d, e = lt.tensor(3.5):to(device):topk(1, 1)
      return { a, b, d, e, x:argsort(1) }
    end)
  end)
end)

describe("randperm of cuda", function()
  both.it("is the CPU's permutation", function()
    for _, n in ipairs { 0, 1, 2, 3, 31, 33, 2100 } do
      for _, dtype in ipairs { "i64", n < 100 and "f32" or nil } do
        both.same_on_both(("%d of %s"):format(n, dtype), function(device)
          local list = {}
          for k = 1, n < 100 and 10 or 1 do
            list[k] = lt.randperm(n, { dtype = dtype, device = device })
          end
          return list
        end)
      end
    end
  end)
end)
