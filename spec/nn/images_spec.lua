-- spec/nn/images_spec.lua: layers of stdlib/ops: Upsample, PixelShuffle, EmbeddingBag, Unfold and
-- their kin; spec/parity compares them with PyTorch.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local nn <const> = lt.nn

local function list(x) return x:flatten():tolist() end
local x <const> = lt.randn(2, 4, 4, 6)

describe("nn.Upsample", function()
  it("is lt.interpolate with its options", function()
    local o = { scale_factor = 2, mode = "bilinear", align_corners = true }
    assert.same(list(x:interpolate(o)), list(nn.Upsample(o)(x)))
    assert.same(list(x:interpolate(o)), list(nn.UpsamplingBilinear2d { scale_factor = 2 }(x)))
    assert.same(list(x:interpolate { size = { 3, 5 } }),
      list(nn.UpsamplingNearest2d { size = { 3, 5 } }(x)))
  end)

  it("shows its options, and refuses none or both of size and scale_factor", function()
    assert.equal('Upsample({size = {3, 5}, mode = "bilinear"})',
      tostring(nn.Upsample { size = { 3, 5 }, mode = "bilinear" }))
    assert.matches("nn.Upsample: needs size or scale_factor$", error_of(nn.Upsample, {}))
    assert.matches("nn.UpsamplingNearest2d: needs size or scale_factor, got both",
      error_of(nn.UpsamplingNearest2d, { size = 2, scale_factor = 2 }))
    assert.matches("nn.UpsamplingNearest2d: unknown option 'mode'",
      error_of(nn.UpsamplingNearest2d, { size = 2, mode = "area" }))
  end)

  it("trains what is before it", function()
    local net = nn.Sequential(nn.Conv2d(4, 2, 3), nn.Upsample { size = 9, mode = "bicubic" })
    net(x):square():sum():backward()
    assert(net[1].weight.grad:abs():sum():item() > 0)
  end)
end)

describe("nn.PixelShuffle", function()
  it("is undone by PixelUnshuffle", function()
    local y = nn.PixelShuffle(2)(x)
    assert.same({ 2, 1, 8, 12 }, y.shape)
    assert.same(list(x), list(nn.PixelUnshuffle(2)(y)))
    assert.same(list(x:channel_shuffle(2)), list(nn.ChannelShuffle(2)(x)))
    assert.equal("PixelShuffle(2)", tostring(nn.PixelShuffle(2)))
    assert.matches("nn.PixelShuffle: upscale_factor must be at least 1: got 0",
      error_of(nn.PixelShuffle, 0))
  end)
end)

describe("nn.EmbeddingBag", function()
  local function ids(values) return lt.tensor(values, { dtype = "i64" }) end

  it("takes rows of ids, or ids and offsets", function()
    local bag = nn.EmbeddingBag(5, 3)
    assert.same(list(bag(ids { { 0, 1 }, { 2, 2 } })), list(bag(ids { 0, 1, 2, 2 }, ids { 0, 2 })))
    local sum = nn.EmbeddingBag(5, 3, { mode = "sum" })
    assert.same(list(sum.weight[4] * 2), list(sum(ids { 3 }, ids { 0 }, lt.tensor { 2.0 })))
    assert.equal('EmbeddingBag(5, 3, {mode = "sum"})', tostring(sum))
  end)

  it("does not train padding_idx, whose vector is zero", function()
    local bag = nn.EmbeddingBag(5, 3, { padding_idx = 1 })
    assert.same({ 0, 0, 0 }, list(bag.weight[2]))
    bag(ids { { 1, 2 } }):sum():backward()
    assert.same({ { 0, 0, 0 }, { 0, 0, 0 }, { 1, 1, 1 }, { 0, 0, 0 }, { 0, 0, 0 } },
      bag.weight.grad:tolist())
    assert.matches("nn.EmbeddingBag: padding_idx must be an id in 0..4: got 5",
      error_of(nn.EmbeddingBag, 5, 3, { padding_idx = 5 }))
  end)
end)

describe("nn.Unfold", function()
  it("gives windows, which Fold adds up", function()
    local columns = nn.Unfold(3, { padding = 1 })(x)
    assert.same({ 2, 36, 24 }, columns.shape)
    local counts = nn.Fold({ 4, 6 }, 3, { padding = 1 })(nn.Unfold(3, { padding = 1 })(
      lt.ones(1, 1, 4, 6)))
    assert.same({ 4, 6, 6, 6, 6, 4, 6, 9, 9, 9, 9, 6 }, { table.unpack(list(counts), 1, 12) })
    assert.same(list(columns[1]), list(nn.Unfold(3, { padding = 1 })(x[1])))
    assert.equal("Fold({4, 6}, 3, {padding = 1})", tostring(nn.Fold({ 4, 6 }, 3, { padding = 1 })))
  end)
end)
