-- spec/cuda/lines_spec.lua: what works along dims gives on a GPU what it gives on the CPU:
-- reductions, extrema, running sums, softmax.
--
-- Sizes go over the borders of what a part of a warp, a warp and a block take, and over those from
-- which lines are cut into segments or no longer fit into shared memory.
-- tags: kernels, slow, threads
local both = require "spec.cuda.both"
local lt = require "ltrain"

-- Of max(1, |value|); for sums, of max(1, the sum of the absolute values).
local BOUND <const> = { f32 = 1e-5, f64 = 1e-12, bf16 = 2e-2, i64 = 0 }
local SIZES <const> = { { 1 }, { 33 }, { 3, 0 }, { 300, 7 }, { 7, 300 }, { 5, 4, 33 }, { 2, 1025 } }

-- The tensor, transposed, every other element, and with values that are not finite.
local function variants(size, dtype)
  local x = lt.randn(size):mul(4):to(dtype)
  local list = { x }
  if #size > 1 then list[#list + 1] = x:transpose(1, #size) end
  if size[#size] > 2 then list[#list + 1] = x:slice(#size, 2, -1, 2) end
  if dtype == "f32" and x:numel() > 0 then
    for _, odd in ipairs { 0 / 0, math.huge, -math.huge } do
      list[#list + 1] = x:masked_fill(lt.rand(size):lt(0.1), odd)
    end
  end
  return list
end

local function compare(op, x, dims, ...)
  local ok, want = pcall(function(...) return { x[op](x, ...) } end, ...)
  local ok_there, got = pcall(function(...) return { x:to("cuda")[op](x:to("cuda"), ...) } end, ...)
  local what = ("%s of %s [%s] along %s"):format(op, x.dtype, table.concat(x.shape, ", "), dims)
  assert.equal(ok, ok_there, what)
  if not ok then return end
  local scale = (op == "sum" or op == "cumsum") and x:abs()[op](x:abs(), ...) or nil
  for k, t in ipairs(want) do both.close(got[k], t, BOUND[x.dtype] or 0, what, scale) end
end

local function along_each_dim(ops, dtypes)
  for _, dtype in ipairs(dtypes) do
    for _, size in ipairs(SIZES) do
      for _, x in ipairs(variants(size, dtype)) do
        for d = 1, #size do
          for _, op in ipairs(ops) do compare(op, x, d, d) end
        end
      end
    end
  end
end

describe("along dims, a GPU", function()
  both.it("has the CPU's reductions", function()
    along_each_dim({ "sum", "mean", "amax", "amin", "any", "all" }, { "f32", "bf16", "i64" })
    for _, x in ipairs(variants({ 5, 4, 33 }, "f64")) do
      compare("sum", x, "1 and 3", { 1, 3 })
      compare("mean", x, "all")
    end
    compare("prod", lt.rand { 4, 40 }:add(0.5), 2, 2)
  end)

  both.it("has the CPU's extrema, the first of equals, NaN before numbers", function()
    along_each_dim({ "max", "min", "argmax", "argmin" }, { "f32", "i64" })
    compare("argmax", lt.randint(0, 9, { 3, 30000 }), "all")
  end)

  both.it("has the CPU's running sums", function()
    along_each_dim({ "cumsum" }, { "f32", "bf16", "i64" })
    compare("cumsum", lt.randn({ 9000 }, { dtype = "f64" }), 1, 1)
  end)

  both.it("has the CPU's softmax", function()
    along_each_dim({ "softmax", "log_softmax" }, { "f32", "bf16" })
    compare("softmax", lt.randn { 2, 13000 }, 2, 2)
    compare("log_softmax", lt.randn({ 2, 700, 3 }, { dtype = "f64" }), 2, 2)
  end)

  both.it("has their gradients", function()
    for _, op in ipairs { "softmax", "log_softmax", "cumsum", "max" } do
      for _, size in ipairs { { 7, 300 }, { 300, 7 }, { 2, 1025 } } do
        for d = 1, 2 do
          local function gradient(device)
            lt.seed(3)
            local x = lt.randn(size):to(device):detach()
            x.requires_grad = true
            local y = x[op](x, d)
            ;(y * lt.randn(y.shape):to(device)):sum():backward()
            return x.grad
          end
          both.close(gradient("cuda"), gradient("cpu"), 2e-5, op .. d)
        end
      end
    end
  end)
end)
