-- spec/cuda/flash_spec.lua: attention of f16 and bf16 by tensor cores, against f64 on the CPU.
--
-- The CPU computes in f64 from the same numbers of 16 bits. What may differ is the rounding of
-- probabilities, of gradients of scores, and of the result: a few units of the largest value.
-- tags: half, slow
local counts = require "spec.cuda.counts"
local both = require "spec.cuda.both"
local lt = require "ltrain"

local UNIT <const> = { f16 = 2 ^ -11, bf16 = 2 ^ -9 }
local UNITS <const> = 8
local DTYPES <const> = { "f16", "bf16" }

-- The result and the gradients of q, k and v, each element of the result with a weight.
local function attend(t, options)
  for _, x in ipairs(t) do x.requires_grad = true end
  local y = lt.scaled_dot_product_attention(t[1], t[2], t[3], options)
  y:backward(t.weight)
  return { y:detach(), t[1].grad, t[2].grad, t[3].grad }
end

local function inputs_of(case, device, dtype)
  local t = { weight = case.weight:to(dtype):to(device) }
  for k = 1, 3 do t[k] = case[k]:to(dtype):to(device):detach() end
  return t
end

local function options_of(case, device)
  local options = {}
  for k, v in pairs(case.options) do options[k] = v end
  options.mask = case.mask and case.mask:to(device)
  return options
end

-- Sizes: b, h, t, s, d, e; `group` heads of queries share one of keys.
local function case_of(dtype, sizes, options, mask, group)
  local b, h, t, s, d, e = table.unpack(sizes)
  local function make(...) return lt.randn(...):to(dtype) end
  return {
    make(b, h * (group or 1), t, d), make(b, h, s, d), make(b, h, s, e),
    weight = make(b, h * (group or 1), t, e), options = options, mask = mask,
    what = dtype .. " " .. table.concat(sizes, " "),
  }
end

-- Fails unless the GPU's results are the CPU's, computed in `wide`.
local function check(dtype, case, wide)
  wide = wide or "f64"
  lt.seed(3)
  local want = attend(inputs_of(case, "cpu", wide), options_of(case, "cpu"))
  lt.seed(3)
  local got = attend(inputs_of(case, "cuda", dtype), options_of(case, "cuda"))
  for k, name in ipairs { "result", "q", "k", "v" } do
    local x, y = got[k]:to("cpu"), want[k]:to("f64")
    assert.equal(dtype, x.dtype)
    local most = y:abs():max():item()
    local off = (x:to("f64") - y):abs():max():item() / (UNIT[dtype] * math.max(most, 0.01))
    assert.is_true(off <= UNITS, ("%s: %s is off by %g units"):format(case.what, name, off))
  end
  return got
end

local function each(fn)
  for _, dtype in ipairs(DTYPES) do fn(dtype) end
end

-- The launches of the result, and of the gradients of three tensors.
local function launches(case, dtype)
  local t, options = inputs_of(case, "cuda", dtype), options_of(case, "cuda")
  for _, x in ipairs(t) do x.requires_grad = true end
  counts()
  local y = lt.scaled_dot_product_attention(t[1], t[2], t[3], options)
  local forward = counts().launches
  y:backward(t.weight)
  return forward, counts().launches
end

describe("attention of f16 and bf16 on cuda", function()
  both.it("computes what f64 does, for lengths around the borders of its tiles", function()
    for k, n in ipairs { 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 130 } do
      local one, other = DTYPES[k % 2 + 1], DTYPES[(k + 1) % 2 + 1]
      check(one, case_of(one, { 1, 1, n, 131 - n, 64, 64 }, {}))
      check(other, case_of(other, { 1, 1, n, n, 32, 32 }, { causal = true }))
    end
  end)

  both.it("takes widths up to 128, of values another one", function()
    for k, d in ipairs { 8, 16, 32, 40, 64, 80, 96, 112, 128 } do
      local one, other = DTYPES[k % 2 + 1], DTYPES[(k + 1) % 2 + 1]
      check(one, case_of(one, { 1, 2, 17, 34, d, d }, { causal = true }))
      check(other, case_of(other, { 1, 1, 20, 17, d, 136 - d }, {}))
    end
  end)

  both.it("sees keys up to its own where lengths differ", function()
    each(function(dtype)
      check(dtype, case_of(dtype, { 2, 1, 130, 65, 32, 32 }, { causal = true }))
      check(dtype, case_of(dtype, { 2, 1, 65, 130, 128, 128 }, { causal = true }))
    end)
  end)

  both.it("shares heads of keys, and reads heads of a projection where they are", function()
    each(function(dtype)
      local case = case_of(dtype, { 2, 2, 70, 50, 64, 32 }, { enable_gqa = true }, nil, 3)
      check(dtype, case)
      case[1] = lt.randn(2, 70, 6, 64):to(dtype):transpose(2, 3)
      case.options.causal = true
      check(dtype, case)
    end)
  end)

  both.it("takes masks of bools and of numbers, broadcast", function()
    each(function(dtype)
      local mask = lt.rand(33, 68):gt(0.4)
      check(dtype, case_of(dtype, { 2, 2, 33, 68, 32, 32 }, { scale = 0.3 }, mask))
      local numbers = lt.randn(2, 1, 1, 68):to(dtype)
      check(dtype, case_of(dtype, { 2, 2, 33, 68, 96, 32 }, { causal = true }, numbers))
    end)
  end)

  both.it("drops what the CPU drops", function()
    each(function(dtype)
      local case = case_of(dtype, { 2, 1, 70, 68, 64, 64 }, { causal = true, dropout_p = 0.3 }, nil,
        2)
      case.options.enable_gqa = true
      check(dtype, case, "f32")
      case.options.first_head, case.options.all_heads = 3, 9
      check(dtype, case, "f32")
      check(dtype, case_of(dtype, { 1, 1, 16, 16, 32, 32 }, { dropout_p = 1 }), "f32")
    end)
  end)

  both.it("gives 0 where nothing takes part, and follows masks of the lowest number", function()
    each(function(dtype)
      local mask = lt.ones(20, 24)
      mask[3]:fill_(0)
      local got = check(dtype, case_of(dtype, { 1, 1, 20, 24, 32, 32 }, {}, mask:gt(0.5)))
      assert.equal(0, got[1][1][1][3]:abs():max():item())
      local lowest = lt.zeros(20, 24)
      lowest[3]:fill_(dtype == "f16" and -65504 or -3.3e38)
      check(dtype, case_of(dtype, { 1, 1, 20, 24, 32, 32 }, {}, lowest:to(dtype)))
    end)
  end)

  both.it("gives NaN where the CPU does", function()
    each(function(dtype)
      local case = case_of(dtype, { 1, 1, 20, 24, 32, 32 }, {})
      case[1][1][1][3][5] = 0 / 0
      local got = attend(inputs_of(case, "cuda", dtype), {})
      local is_nan = got[1]:ne(got[1]):to("cpu"):to("f32"):sum { 1, 2, 4 }
      for t = 1, 20 do assert.equal(t == 3 and 32 or 0, is_nan[t]:item()) end
      assert.is_true(got[2][1][1][3]:ne(got[2][1][1][3]):to("cpu"):all():item())
    end)
  end)

  both.it("has the same bits each time", function()
    local case = case_of("bf16", { 2, 2, 130, 132, 64, 64 }, { causal = true, dropout_p = 0.1 })
    local first, again = check("bf16", case, "f32"), check("bf16", case, "f32")
    for k, x in ipairs(first) do both.same(again[k], x, "run " .. k) end
  end)

  both.it("keeps no scores: one launch forward, three backward", function()
    if not counts then return end
    local plain = case_of("bf16", { 2, 1, 64, 64, 64, 64 }, { causal = true })
    assert.same({ 1, 3 }, { launches(plain, "bf16") })
    for what, other in pairs {
      width = case_of("bf16", { 1, 2, 64, 64, 20, 20 }, {}),
      scale = case_of("bf16", { 1, 2, 64, 64, 64, 64 }, { scale = -1 }),
      dropout = case_of("bf16", { 1, 2, 64, 63, 64, 64 }, { dropout_p = 0.5 }),
    } do
      assert.is_true(launches(other, "bf16") > 1, what)
    end
  end)
end)
