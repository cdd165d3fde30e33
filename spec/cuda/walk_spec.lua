-- spec/cuda/walk_spec.lua: operands that 32 bits cannot index are cut, also where it is not the
-- number of elements that is large, but how far their memory reaches (spec/cuda/walk.cpp).
local BUILD <const> = os.getenv "LT_BUILD" or "build"

describe("elementwise kernels of cuda", function()
  it("get pieces that 32 bits can index, of all elements", function()
    local pipe <close> = assert(io.popen(BUILD .. "/spec/cuda/walk 2>&1"))
    -- Pieces are halves, of halves, until they fit: 999 steps of 2^31 / 500 bytes are 1.998 * 2^31.
    assert.equal([[
dense: 1 pieces, within 32 bits, all elements
far source: 2 pieces, within 32 bits, all elements
far result: 2 pieces, within 32 bits, all elements
backwards: 2 pieces, within 32 bits, all elements
far rows: 3 pieces, within 32 bits, all elements
many elements: 4 pieces, within 32 bits, all elements
one element for many: 4 pieces, within 32 bits, all elements
]], pipe:read "a")
  end)
end)
