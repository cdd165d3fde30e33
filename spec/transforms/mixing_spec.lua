-- spec/transforms/mixing_spec.lua: MixUp and CutMix, and the loader's batch_transform.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local T <const>, data <const> = lt.transforms, lt.data

-- Image k is all k, label k.
local function batch(n)
  local ids = lt.arange(n or 4)
  return { ids:to "f32":view(-1, 1, 1, 1):expand(-1, 2, 6, 8), ids }
end

describe("MixUp", function()
  it("mixes each image and label with the one before it, by one share", function()
    lt.seed(1)
    local mix, shares = T.MixUp { num_classes = 4, alpha = 0.5 }, {}
    for k = 1, 50 do
      local out = mix(batch())
      local share = out[2][1][1]:item()
      local expected = lt.tensor { 3 * (1 - share), share, 2 * share + 1 - share,
        3 * share + 2 * (1 - share) }:view(4, 1, 1, 1):expand(4, 2, 6, 8)
      assert(lt.allclose(expected, out[1], { atol = 1e-5 }))
      assert(lt.allclose(out[2]:sum(2), lt.ones(4)))
      assert(math.abs(out[2][1][4]:item() - (1 - share)) < 1e-6)
      shares[k] = share
    end
    local x = lt.tensor(shares)
    assert(math.abs(x:mean():item() - 0.5) < 0.15)
    assert(x:std():item() > 0.25) -- Beta(0.5, 0.5) has 0.354
  end)
end)

describe("CutMix", function()
  it("cuts a rectangle, and labels are shares of the area", function()
    lt.seed(2)
    local cut, total = T.CutMix { num_classes = 4 }, 0
    for _ = 1, 60 do
      local out = cut(batch())
      local mine = out[1]:eq(batch()[1]):to "f32"
      local share = mine[2]:mean():item()
      assert(math.abs(out[2][2][2]:item() - share) < 1e-6)
      assert(math.abs(out[2][2][1]:item() - (1 - share)) < 1e-6)
      local rows, columns = (1 - mine[2][1]):sum(2), (1 - mine[2][1]):sum(1)
      assert.equal(math.floor((1 - share) * 48 + 0.5),
        (rows:max() * columns:max()):item() // 1 | 0)
      total = total + share
    end
    assert(total / 60 > 0.4 and total / 60 < 0.8, total / 60)
  end)

  it("and MixUp take labels that are shares, and say what is missing", function()
    local images = batch()[1]
    local out = T.CutMix {} { images, lt.eye(4) }
    assert.same({ 4, 4 }, out[2].shape)
    for _, name in ipairs { "MixUp", "CutMix" } do
      assert.matches(("transforms.%s: num_classes is needed for labels that are ids"):format(name),
        error_of(T[name] {}, batch()), 1, true)
      assert.matches(("transforms.%s: a batch is {images [N, C, H, W], labels [N] or [N, K]}: got"
        ):format(name), error_of(T[name] {}, { images, lt.zeros(3) }), 1, true)
    end
  end)
end)

describe("batch_transform", function()
  local function all(options, first)
    local x = lt.arange(20):to "f32":view(20, 1, 1, 1):expand(20, 1, 4, 4):contiguous()
    local loader = data.DataLoader(data.TensorDataset(x, lt.arange(20)), options)
    local list = {}
    for out in loader:batches(first) do list[#list + 1] = lt.hash(out) end
    return list
  end

  it("draws by seed, epoch and number of the batch", function()
    local options = { batch_size = 4, shuffle = true, seed = 3,
      batch_transform = T.RandomChoice { T.MixUp { num_classes = 20 },
        T.CutMix { num_classes = 20 } } }
    local first = all(options)
    assert.same(first, all(options))
    lt.rand(3) -- the script's own draws do not move it
    assert.same({ table.unpack(first, 3) }, all(options, 2))
    options.seed = 4
    assert.is_not.same(first, all(options))
  end)

  it("is a function, and returns a batch", function()
    assert.matches("DataLoader: batch_transform must be a function: got 3",
      error_of(all, { batch_transform = 3 }), 1, true)
    assert.matches("DataLoader: batch_transform returned nothing",
      error_of(all, { batch_transform = function() end }), 1, true)
  end)

  it("of ranks differ", function()
    local x = lt.ones(8, 1)
    local drawn = {}
    for rank = 0, 1 do
      local loader = data.DataLoader(data.TensorDataset(x), { batch_size = 4, seed = 1,
        batch_transform = function() return lt.rand(1) end })
      loader:shard(rank, 2, "train")
      for out in loader:batches() do drawn[rank] = out:item() end
    end
    assert.is_not.equal(drawn[0], drawn[1])
  end)
end)
