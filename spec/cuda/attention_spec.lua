-- spec/cuda/attention_spec.lua: attention of a GPU and its gradients are the CPU's.
--
-- The emulated backend has tiles of 64 rows: shapes go over that border.
local both = require "spec.cuda.both"
local lt = require "ltrain"

local BOUND <const> = { f32 = 2e-5, f16 = 6e-3, bf16 = 3e-2, f64 = 1e-12 }
local DTYPES <const> = { "f32", "f16", "bf16", "f64" }
-- B, H, T, S, D, E
local SIZES <const> = { { 2, 3, 5, 7, 4, 6 }, { 1, 2, 66, 37, 3, 5 } }

-- The result and the gradients of what is asked for it, with a weight on each element.
local function attend(device, inputs, mask, options)
  local t, o = {}, {}
  for k, v in pairs(options) do o[k] = v end
  for k = 1, 3 do
    t[k] = inputs[k]:to(device):detach()
    t[k].requires_grad = true
  end
  o.mask = mask and mask:to(device):detach()
  if mask and mask.dtype ~= "bool" then o.mask.requires_grad = true end
  lt.seed(7)
  local y = lt.scaled_dot_product_attention(t[1], t[2], t[3], o)
  local weight = lt.randn(y.shape):to(y.dtype):to(device)
  ;(y * weight):sum():backward()
  return { y:detach(), t[1].grad, t[2].grad, t[3].grad, o.mask and o.mask.grad }
end

local function check(what, dtype, inputs, mask, options)
  local want = attend("cpu", inputs, mask, options)
  local got = attend("cuda", inputs, mask, options)
  for k, t in ipairs(want) do
    both.close(got[k], t, BOUND[dtype], ("%s %s: %d"):format(dtype, what, k))
  end
end

local function make(dtype, ...) return lt.randn(...):to(dtype) end

-- Without `dtypes` those of the two ways of tiles: with scores of another dtype, and without.
local function each(fn, dtypes)
  for _, dtype in ipairs(dtypes or { "f32", "f16" }) do
    for _, s in ipairs(SIZES) do fn(table.concat(s, " "), dtype, table.unpack(s)) end
  end
end

describe("scaled_dot_product_attention on cuda", function()
  both.it("sees all keys, or those up to its own", function()
    each(function(what, dtype, b, h, t, s, d, e)
      local inputs = { make(dtype, b, h, t, d), make(dtype, b, h, s, d), make(dtype, b, h, s, e) }
      check(what, dtype, inputs, nil, {})
      check(what .. " causal", dtype, inputs, nil, { causal = true })
    end, DTYPES)
  end)

  both.it("takes one of everything, and no keys", function()
    for _, dtype in ipairs(DTYPES) do
      check("one", dtype, { make(dtype, 1, 1), make(dtype, 1, 1), make(dtype, 1, 1) }, nil, {})
      check("no keys", dtype, { make(dtype, 3, 2), make(dtype, 0, 2), make(dtype, 0, 4) }, nil, {})
    end
  end)

  both.it("takes masks of bools and of numbers, broadcast", function()
    each(function(what, dtype, b, h, t, s, d, e)
      local inputs = { make(dtype, b, h, t, d), make(dtype, b, h, s, d), make(dtype, b, h, s, e) }
      check(what .. " bool", dtype, inputs, lt.rand(t, s):gt(0.4), { scale = 0.3 })
      check(what .. " keys", dtype, inputs, make(dtype, b, 1, 1, s), { causal = true })
    end)
  end)

  both.it("drops what the CPU drops", function()
    each(function(what, dtype, b, h, t, s, d, e)
      local inputs = { make(dtype, b, h, t, d), make(dtype, b, h, s, d), make(dtype, b, h, s, e) }
      check(what, dtype, inputs, nil, { causal = true, dropout_p = 0.3 })
      check(what .. " of 7 heads", dtype, inputs, nil, { dropout_p = 0.3, first_head = 3,
        all_heads = 7 })
    end)
  end)

  both.it("reads heads of a projection where they are", function()
    each(function(what, dtype, b, h, t, s, d, e)
      local function heads(rows, width) return make(dtype, b, rows, h, width):transpose(2, 3) end
      check(what, dtype, { heads(t, d), heads(s, d), heads(s, e) }, nil, { causal = true })
    end)
  end)

  both.it("takes two and three dims", function()
    each(function(what, dtype, _, h, t, s, d, e)
      local three = { make(dtype, h, t, d), make(dtype, h, s, d), make(dtype, h, s, e) }
      check(what .. " 3", dtype, three, nil, {})
      check(what .. " 2", dtype, { make(dtype, t, d), make(dtype, s, d), make(dtype, s, e) }, nil,
        {})
    end)
  end)

  both.it("shares heads of keys", function()
    each(function(what, dtype, b, h, t, s, d, e)
      local k, v = make(dtype, b, h, s, d), make(dtype, b, h, s, e)
      check(what, dtype, { make(dtype, b, 2 * h, t, d), k, v }, nil, { enable_gqa = true })
      check(what .. " strided", dtype, { make(dtype, b, t, 2 * h, d):transpose(2, 3), k, v }, nil,
        { enable_gqa = true, causal = true, dropout_p = 0.2 })
    end)
  end)

  both.it("gives 0 where nothing takes part, and lets NaN through", function()
    local q, k, v = lt.randn(4, 8), lt.randn(6, 8), lt.randn(6, 3)
    local mask = lt.ones(4, 6)
    mask[2]:fill_(0)
    check("hidden", "f32", { q, k, v }, mask:gt(0.5), {})
    q[1][2], v[3][1] = 0 / 0, 1 / 0
    check("nan", "f32", { q, k, v }, mask:gt(0.5), {})
  end)
end)
