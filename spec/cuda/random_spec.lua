-- spec/cuda/random_spec.lua: random tensors of a GPU have the CPU's bits.
local both = require "spec.cuda.both"
local error_of = require "spec.error_of"
local lt = require "ltrain"

-- No elements, one, around words of a block and threads of one, several dims.
local SIZES <const> = { { 0 }, {}, { 1 }, { 3 }, { 33 }, { 1025 }, { 3, 5, 7 }, { 2, 0, 3 } }
local FLOATS <const> = { "f32", "f64", "f16", "bf16" }

local function each(dtypes, fn)
  for _, size in ipairs(SIZES) do
    for _, dtype in ipairs(dtypes) do
      local what = ("%s [%s]"):format(dtype, table.concat(size, ", "))
      both.same_on_both(what, function(device)
        return fn(size, { dtype = dtype, device = device })
      end)
    end
  end
end

describe("random tensors of cuda", function()
  both.it("are the CPU's uniforms", function()
    each(FLOATS, lt.rand)
  end)

  both.it("are the CPU's normals, within two units of the last place in f64", function()
    each({ "f32", "f16", "bf16" }, lt.randn)
    lt.seed(7)
    local want = lt.randn(1025, { dtype = "f64" })
    lt.seed(7)
    both.close(lt.randn(1025, { dtype = "f64", device = "cuda" }), want, 2 ^ -51, "f64")
  end)

  both.it("are the CPU's integers, of 32 and of 64 bits", function()
    local dtypes = { "i64", "i32", "u8", "bool", "f32", "f16" }
    each(dtypes, function(size, options) return lt.randint(0, 100, size, options) end)
    each(dtypes, function(size, options) return lt.randint(-5, 1 << 40, size, options) end)
    each({ "i64" }, function(size, options)
      return lt.randint(math.mininteger, math.maxinteger, size, options)
    end)
  end)

  both.it("drop what the CPU drops, and draw as it does", function()
    each(FLOATS, function(size, options)
      local x = lt.full(size, 0.4, { dtype = options.dtype }):to(options.device)
      return { lt.dropout(x, { p = 0.3 }), lt.bernoulli(x) }
    end)
  end)

  both.it("follow the logical order of views", function()
    for _, p in ipairs { 0, 1e-9, 0.5, 1 } do
      for _, dtype in ipairs { "f32", "f64", "bf16" } do
        both.same_on_both(("p = %g, %s"):format(p, dtype), function(device)
          local x = lt.randn({ 7, 33, 5 }, { dtype = dtype }):to(device)
          local row = lt.randn({ 1, 40 }, { dtype = dtype }):to(device)
          return {
            lt.dropout(x:permute { 3, 1, 2 }, { p = p }), lt.dropout(x:narrow(2, 4, 21), { p = p }),
            lt.dropout(row:expand { 5, 40 }, { p = p }),
          }
        end)
      end
    end
  end)

  both.it("keep nan and infinities that are not dropped", function()
    both.same_on_both("odd values", function(device)
      return lt.dropout(lt.tensor({ 0 / 0, 1 / 0, -1 / 0, -0.0, 1, 2 }):to(device), { p = 0.5 })
    end)
  end)
end)

describe("multinomial of cuda", function()
  local function draw(name, options)
    both.it(name, function()
      local sizes <const> = { { 1 }, { 33 }, { 257 }, { 1000 }, { 3, 5 }, { 40, 9 }, { 3, 300 } }
      -- Runs of sums (LT_RUN), and tiles of runs.
      if options.replacement then sizes[#sizes + 1] = { 50000 } end
      for _, size in ipairs(sizes) do
        for _, n in ipairs { 1, 5, 100 } do
          if options.replacement or n <= size[#size] then
            both.same_on_both(("%d of [%s]"):format(n, table.concat(size, ", ")), function(device)
              local weights = lt.rand(size):to(device)
              local ids = lt.randint(0, 3, size):add(1):to(device)
              local list = { weights:multinomial(n, options), ids:multinomial(n, options) }
              if #size == 2 and n <= size[1] then
                list[3] = weights:t():multinomial(n, options)
              end
              return list
            end)
          end
        end
      end
    end)
  end
  draw("draws the CPU's ids with replacement", { replacement = true })
  draw("draws the CPU's ids without replacement", { replacement = false })

  local function refuses(name, weights, n, options, part)
    both.it(name, function()
      local x <const> = lt.tensor(weights):to("cuda")
      local text = error_of(function() return x:multinomial(n, options):to("cpu") end)
      assert.is_truthy(text:find(part, 1, true), text)
    end)
  end
  refuses("names the row with what is no probability", { { 1, 2 }, { 1, -1 } }, 1, {},
    "multinomial: no probability: one that is negative, infinite or NaN (row 2)")
  refuses("names the row whose probabilities are all 0", { { 1, 2 }, { 0, 0 } }, 1,
    { replacement = true }, "multinomial: all probabilities are 0 (row 2)")
  refuses("names the row with too few elements", { { 1, 2 }, { 0, 1 } }, 2, {},
    "multinomial: 2 samples without replacement from fewer elements that are not 0 (row 2)")
end)

describe("bernoulli of cuda", function()
  both.it("says what is no probability", function()
    local x <const> = lt.tensor({ 0.5, 1.5 }):to("cuda")
    local text = error_of(function() return lt.bernoulli(x):to("cpu") end)
    assert.is_truthy(text:find("bernoulli: probabilities must be in 0..1: got 1.5", 1, true), text)
  end)
end)
