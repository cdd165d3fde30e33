-- spec/ops/product_pieces_spec.lua: large thin products of halves, which the CPU makes in pieces,
-- or in tiles that are rounded as they are stored.
-- tags: half, slow
local child = require "spec.cli.child"
local products = require "spec.ops.halves_products"

describe("a large thin product of halves", function()
  for _, dtype in ipairs { "bf16", "f16" } do
    it("of " .. dtype .. " is what it is in f64, rounded once", function()
      assert.equal("", products.off(dtype))
      assert.equal("", products.not_rounded(dtype))
    end)

    it("of " .. dtype .. " has the same bits on any number of threads", function()
      assert.equal("", products.by_threads(dtype))
    end)

    it("of " .. dtype .. " keeps NaN and infinities", function()
      assert.is_true(products.not_numbers(dtype))
    end)
  end

  -- ONEDNN_MAX_CPU_ISA takes products of bf16 away from oneDNN.
  for _, on in ipairs { { "v2", "SSE41" }, { "v3", "AVX2" }, { "v4", "AVX512_CORE" } } do
    local level <const>, isa <const> = on[1], on[2]
    it("is that on level " .. level .. " without such products in hardware", function()
      local status, out, err = child.run({ "-e", [[
        local products = require "spec.ops.halves_products"
        print(products.off "bf16" .. products.not_rounded "bf16" .. products.by_threads "bf16",
          products.not_numbers "bf16", products.off "f16" .. products.not_rounded "f16")
      ]] }, { env = { LTRAIN_CPU_LEVEL = level, ONEDNN_MAX_CPU_ISA = isa } })
      if err:find("this processor runs only", 1, true) or err:find("no such level", 1, true) then
        pending(err)
      end
      assert.same({ 0, "\ttrue\t\n", "" }, { status, out, err })
    end)
  end
end)
