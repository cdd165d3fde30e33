-- spec/data/samplers_spec.lua: samplers, data sets of data sets, folds, windows, padded sequences.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local data = lt.data

-- The contents of all batches of an epoch of a loader of 0..n-1.
local function seen(n, options)
  local list = {}
  for batch in data.DataLoader(data.TensorDataset(lt.arange(n)), options):batches() do
    for _, value in ipairs(batch[1]:tolist()) do list[#list + 1] = value end
  end
  return list
end

local function sorted(list)
  table.sort(list)
  return list
end

local function counts(list)
  local count = {}
  for _, value in ipairs(list) do count[value] = (count[value] or 0) + 1 end
  return count
end

describe("RandomSampler", function()
  local set <const> = data.TensorDataset(lt.arange(10))

  it("draws all samples once, and begins again beyond them", function()
    assert.same({ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 },
      sorted(seen(10, { sampler = data.RandomSampler(set) })))
    local sampler <const> = data.RandomSampler(set, { num_samples = 25 })
    local count <const> = counts(seen(10, { sampler = sampler }))
    for value = 0, 9 do assert.is_true(count[value] == 2 or count[value] == 3) end
  end)

  it("draws with replacement from all of them", function()
    local sampler <const> = data.RandomSampler(set, { replacement = true, num_samples = 400 })
    local count <const> = counts(seen(10, { sampler = sampler, batch_size = 50 }))
    for value = 0, 9 do assert.is_true(count[value] > 10 and count[value] < 90) end
  end)

  it("gives the same order for a seed and epoch, another in the next epoch", function()
    local function order(epoch)
      local loader <const> = data.DataLoader(set, { sampler = data.RandomSampler(set), seed = 3 })
      loader:set_epoch(epoch)
      local list = {}
      for batch in loader:batches() do list[#list + 1] = batch[1]:item() end
      return list
    end
    assert.same(order(1), order(1))
    assert.not_same(order(1), order(2))
  end)
end)

describe("SubsetRandomSampler", function()
  it("draws the positions that it is given", function()
    assert.same({ 1, 4, 8 }, sorted(seen(10, { sampler = data.SubsetRandomSampler { 2, 9, 5 } })))
    assert.matches("positions must be a list", error_of(data.SubsetRandomSampler, {}))
  end)
end)

describe("WeightedRandomSampler", function()
  it("draws in proportion to the weights", function()
    local count <const> = counts(seen(3, { batch_size = 100,
      sampler = data.WeightedRandomSampler({ 3, 0, 1 }, 2000) }))
    assert.is_nil(count[1])
    assert.is_true(count[0] > 1350 and count[0] < 1650)
  end)

  it("draws none twice without replacement", function()
    local sampler <const> = data.WeightedRandomSampler(lt.tensor { 1, 0, 2, 5 }, 3,
      { replacement = false })
    assert.same({ 0, 2, 3 }, sorted(seen(4, { sampler = sampler })))
  end)

  it("refuses weights that are none", function()
    assert.matches("a weight is negative or not finite",
      error_of(data.WeightedRandomSampler, { 1, -1 }, 2))
    assert.matches("3 samples without replacement: 2 weights are not 0",
      error_of(data.WeightedRandomSampler, { 1, 0, 1 }, 3, { replacement = false }))
    assert.matches("0 weights are not 0", error_of(data.WeightedRandomSampler, { 0, 0 }, 1))
    assert.matches("weights must be a tensor %[n%] or a list",
      error_of(data.WeightedRandomSampler, lt.ones(2, 2), 2))
  end)
end)

describe("BucketSampler", function()
  it("puts samples of about equal length together, each once", function()
    lt.seed(4)
    local lengths = {}
    for k = 1, 1000 do lengths[k] = lt.randint(1, 500, { 1 }):item() end
    local sampler <const> = data.BucketSampler(lengths, 10)
    local padded, whole, all = 0, 0, {}
    for _, batch in ipairs(sampler:batches()) do
      local longest = 0
      for _, position in ipairs(batch) do
        longest = math.max(longest, lengths[position])
        whole = whole + lengths[position]
        all[#all + 1] = position
      end
      padded = padded + longest * #batch
    end
    assert.is_true(padded < 1.05 * whole)
    table.sort(all)
    for k = 1, 1000 do assert.equal(k, all[k]) end
    assert.not_same(sampler:batches(), sampler:batches())
  end)

  it("is a batch_sampler; drops what is incomplete where it is told to", function()
    local set <const> = data.TensorDataset(lt.arange(7))
    local function sizes(options)
      local sampler <const>, list = data.BucketSampler(lt.arange(7), 3, options), {}
      for batch in data.DataLoader(set, { batch_sampler = sampler }):batches() do
        list[#list + 1] = batch[1].shape[1]
      end
      return sorted(list)
    end
    assert.same({ 1, 3, 3 }, sizes())
    assert.same({ 3, 3 }, sizes { drop_last = true })
    assert.matches("lengths must be a tensor", error_of(data.BucketSampler, {}, 2))
  end)
end)

describe("ConcatDataset and StackDataset", function()
  it("read one data set after the other", function()
    local both <const> = data.ConcatDataset({ "a", "b" }, {}, data.TensorDataset(lt.arange(2)))
    assert.equal(4, #both)
    assert.same({ "a", "b" }, { both:get(1), both[2] })
    assert.equal(1, both:get(4)[1]:item())
    assert.is_nil(both[5])
    assert.matches("there is no sample 5: positions are 1..4", error_of(both.get, both, 5))
    assert.matches("data set 2 must have get", error_of(data.ConcatDataset, { 1 }, 3))
  end)

  it("read data sets side by side", function()
    local pairs_of <const> = data.StackDataset({ 1, 2 }, { "a", "b" })
    assert.same({ 2, "b" }, pairs_of:get(2))
    local named <const> = data.StackDataset { x = { 1, 2 }, y = { 3, 4 } }
    assert.same({ x = 1, y = 3 }, named[1])
    local rows <const> = data.StackDataset { x = lt.arange(4):view(2, 2), y = { 3, 4 } }
    assert.same({ 2, 3 }, rows:get(2).x:tolist())
    assert.matches("y has 1 samples, the others have 2",
      error_of(data.StackDataset, { x = { 1, 2 }, y = { 3 } }))
  end)

  it("are read by loaders", function()
    local set <const> = data.StackDataset { x = data.ConcatDataset({ 1, 2 }, { 3 }),
                                            y = { "a", "b", "c" } }
    for batch in data.DataLoader(set, { batch_size = 3 }):batches() do
      assert.same({ 1, 2, 3 }, batch.x:tolist())
      assert.same({ "a", "b", "c" }, batch.y)
    end
  end)
end)

describe("KFold", function()
  local function values(subset)
    local list = {}
    for k = 1, #subset do list[k] = subset:get(k) end
    return list
  end
  local function numbers(n)
    local list = {}
    for k = 1, n do list[k] = k end
    return list
  end

  it("has each sample in one validation part, of equal size", function()
    local all = {}
    for fold, train, val in data.KFold(3):split(numbers(10)) do
      assert.is_true(#val == 3 or #val == 4)
      assert.equal(10, #train + #val)
      assert.is_true(fold <= 3)
      for _, value in ipairs(values(val)) do all[#all + 1] = value end
    end
    assert.same(numbers(10), sorted(all))
  end)

  it("keeps the shares of labels", function()
    local labels = {}
    for k = 1, 60 do labels[k] = k % 6 == 0 and "rare" or "common" end
    for _, _, val in data.KFold(5, { stratified = labels, seed = 2 }):split(numbers(60)) do
      local rare = 0
      for _, value in ipairs(values(val)) do rare = rare + (labels[value] == "rare" and 1 or 0) end
      assert.same({ 12, 2 }, { #val, rare })
    end
  end)

  it("keeps groups whole", function()
    local groups <const> = lt.tensor({ 0, 0, 0, 1, 1, 2, 2, 3 }, { dtype = "i64" })
    local fold_of = {}
    for fold, _, val in data.KFold(2, { groups = groups }):split(numbers(8)) do
      assert.equal(4, #val)
      for _, value in ipairs(values(val)) do
        local group <const> = groups[value]:item()
        assert.is_true(fold_of[group] == nil or fold_of[group] == fold)
        fold_of[group] = fold
      end
    end
  end)

  it("is the same for a seed, in order without a shuffle", function()
    local function first(options)
      local _, _, val = data.KFold(4, options):split(numbers(20))()
      return values(val)
    end
    assert.same(first { seed = 1 }, first { seed = 1 })
    assert.not_same(first { seed = 1 }, first { seed = 2 })
    assert.same({ 1, 5, 9, 13, 17 }, first { shuffle = false })
  end)

  it("refuses what cannot be split", function()
    local function split(k, options, n)
      return error_of(function() data.KFold(k, options):split(numbers(n))() end)
    end
    assert.matches("2 samples for 3 folds", split(3, nil, 2))
    assert.matches("stratified has 2 values: the data set has 4 samples",
      split(2, { stratified = { 1, 2 } }, 4))
    assert.matches("1 groups for 2 folds", split(2, { groups = { 1, 1 } }, 2))
    assert.matches("exclude each other", split(2, { groups = { 1, 1 }, stratified = { 1, 1 } }, 2))
    assert.matches("n_splits", split(1, nil, 2))
  end)
end)

describe("windows", function()
  it("are views of a series, with what comes after each", function()
    local x, y = data.windows(lt.arange(7), { size = 3, stride = 2, horizon = 2 })
    assert.same({ { 0, 1, 2 }, { 2, 3, 4 } }, x:tolist())
    assert.same({ { 3, 4 }, { 5, 6 } }, y:tolist())
    local several <const> = data.windows(lt.arange(10):view(5, 2), { size = 4, horizon = 0 })
    assert.same({ 2, 4, 2 }, several.shape)
    assert.same({ { 2, 3 }, { 4, 5 }, { 6, 7 }, { 8, 9 } }, several[2]:tolist())
    assert.matches("a series of 3 steps has no window of 3 and 1 after it",
      error_of(data.windows, lt.arange(3), { size = 3 }))
    assert.matches("size is missing", error_of(data.windows, lt.arange(3)))
  end)
end)

describe("pad_sequence", function()
  it("fills sequences up to one length", function()
    local out, lengths = data.pad_sequence({ lt.tensor { 1, 2, 3 }, lt.zeros(0), lt.tensor { 4 } },
      { padding_value = -1 })
    assert.same({ { 1, 2, 3 }, { -1, -1, -1 }, { 4, -1, -1 } }, out:tolist())
    assert.same({ 3, 0, 1 }, lengths:tolist())
    assert.same({ 1, 4, 2 }, data.pad_sequence({ lt.ones(3, 2) }, { length = 4 }).shape)
    assert.matches("a sequence of 3 is longer than length = 2",
      error_of(data.pad_sequence, { lt.ones(3) }, { length = 2 }))
    assert.same({ { 0, 1, 2 }, { 1, 2, 3 } }, data.pad_sequence({ lt.tensor { 1, 2 },
      lt.tensor { 1, 2, 3 } }, true, 0, "left"):tolist())
    assert.matches("batch_first = false", error_of(data.pad_sequence, { lt.ones(3) }, false))
    local list = data.unpad_sequence(out, lengths)
    assert.same({ { 1, 2, 3 }, {}, { 4 } }, { list[1]:tolist(), list[2]:tolist(),
      list[3]:tolist() })
    assert.matches("needs a length for each of the 3 sequences", error_of(data.unpad_sequence, out,
      { 1 }))
    assert.matches("length 1 must be in 0..", error_of(data.unpad_sequence, out, { 9, 0, 1 }))
    assert.matches("sequence 1 must be a tensor", error_of(data.pad_sequence, { 3 }))
  end)
end)
