-- spec/data/datasets_spec.lua: data sets by position, their parts, what they refuse.

local c = require "ltrain.c"
local lt = require "ltrain"
local error_of = require "spec.error_of"
local has = require "spec.has"

local data <const> = lt.data

local function first(n)
  return lt.arange(n):to("f32")
end

describe("data.TensorDataset", function()
  it("gives the rows of its tensors by position", function()
    local ds = data.TensorDataset(lt.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }, first(3))
    assert.equal(3, #ds)
    assert.same({ 3, 4 }, ds:get(2)[1]:tolist())
    assert.equal(1.0, ds:get(2)[2]:item())
  end)

  it("takes tensors by name", function()
    local ds = data.TensorDataset { label = lt.tensor { 7, 8 }, image = lt.ones(2, 3) }
    assert.equal(8, ds:get(2).label:item())
    assert.same({ 1, 1, 1 }, ds:get(1).image:tolist())
  end)

  it("reads u8 values as shares of a divisor", function()
    local ds = data.TensorDataset(lt.tensor { { 0, 51 }, { 255, 102 } }:to("u8")):scaled(1, 255)
    local row = ds:get(2)[1]
    assert.equal("f32", row.dtype)
    assert.near(0.4, row[2]:item(), 1e-7)
    assert.equal("u8", ds.tensors[1].dtype)
  end)

  it("sees what is written into its tensors later", function()
    local x = lt.zeros(2, 2)
    local ds = data.TensorDataset(x)
    x:fill_(3)
    assert.same({ 3, 3 }, ds:get(1)[1]:tolist())
  end)

  it("raises at the user's line on lengths that differ, showing the shape", function()
    local message = error_of(function() data.TensorDataset(lt.ones(3, 2), lt.ones(4)) end)
    has(message, "datasets_spec.lua:")
    has(message, "TensorDataset: tensor 2 has 4 samples, the others have 3: got a tensor [4]")
  end)

  it("raises on what is not a tensor, on none, and on a tensor without dimensions", function()
    has(error_of(data.TensorDataset, 3), "TensorDataset: tensor 1 must be a tensor: got 3")
    has(error_of(data.TensorDataset), "give at least one tensor")
    has(error_of(data.TensorDataset, lt.tensor(3)), "no dimension to count samples by")
    has(error_of(data.TensorDataset, { x = "a" }), "'x' must be a tensor: got 'a'")
  end)

  it("raises on a position out of range", function()
    local ds = data.TensorDataset(first(3))
    has(error_of(ds.get, ds, 4), "there is no sample 4: positions are 1..3")
    has(error_of(ds.get, ds, 0), "there is no sample 0: positions are 1..3")
  end)
end)

describe("data.Dataset", function()
  it("asks for what a subclass did not define", function()
    local Half = data.Dataset:extend("Half")
    has(error_of(function() return #Half() end), "Half: define __len()")
    has(error_of(function() return Half():get(1) end), "Half: define get(i)")
  end)
end)

describe("data.Subset", function()
  it("gives some samples in an order of its own", function()
    local sub = data.Subset(data.TensorDataset(first(5)), { 5, 1, 5 })
    assert.equal(3, #sub)
    assert.equal(4.0, sub:get(1)[1]:item())
    assert.equal(0.0, sub:get(2)[1]:item())
  end)

  it("nests", function()
    local sub = data.Subset(data.Subset({ "a", "b", "c", "d" }, { 4, 3, 1 }), { 2, 1 })
    assert.equal("c", sub:get(1))
    assert.equal("d", sub:get(2))
  end)

  it("raises on a position that the data set lacks", function()
    has(error_of(data.Subset, { "a", "b" }, { 1, 3 }), "entry 2 must be a position in 1..2, got 3")
  end)
end)

describe("data.random_split", function()
  local function labels(part)
    local list = {}
    for i = 1, #part do list[i] = part:get(i) end
    return list
  end

  local whole = {}
  for i = 1, 100 do whole[i] = i end

  it("cuts a data set into parts that cover it without overlap", function()
    local seen = {}
    for _, part in ipairs(data.random_split(whole, { 70, 20, 10 }, { seed = 4 })) do
      for _, label in ipairs(labels(part)) do
        assert.is_nil(seen[label])
        seen[label] = true
      end
    end
    assert.equal(100, #seen)
  end)

  it("is a function of the seed", function()
    local function split(seed)
      return labels(data.random_split(whole, { 50, 50 }, { seed = seed })[1])
    end
    assert.same(split(1), split(1))
    assert.is_not.same(split(1), split(2))
    lt.seed(9)
    local a = labels(data.random_split(whole, { 50, 50 })[1])
    assert.same(split(9), a)
  end)

  it("takes shares, and hands out what rounding leaves", function()
    local parts = data.random_split({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, { 0.5, 0.25, 0.25 })
    assert.same({ 6, 3, 2 }, { #parts[1], #parts[2], #parts[3] })
  end)

  it("raises on lengths that do not fit", function()
    has(error_of(data.random_split, whole, { 70, 20 }), "lengths sum to 90: the data set has 100")
    has(error_of(data.random_split, whole, { 0.7, 0.2 }), "fractions must sum to 1: got 0.9")
    has(error_of(data.random_split, whole, { 1.5, -0.5 }), "a fraction must be in 0..1: got 1.5")
    has(error_of(data.random_split, whole, { -1, 101 }), "a length must be a count: got -1")
    has(error_of(data.random_split, whole, { 100 }, { sed = 1 }), "did you mean 'seed'?")
  end)
end)

describe("data.digits", function()
  it("draws 12,000 digits to train on, 2,000 others to test on", function()
    assert.equal(2000, #data.digits { split = "test" })
    local few = data.digits { n = 20 }
    assert.equal(20, #few)
    local image, label = table.unpack(few:get(1))
    assert.same({ 1, 28, 28 }, image.shape)
    assert.equal("f32", image.dtype)
    assert.is_true(image:max():item() <= 1 and image:min():item() >= 0)
    assert.equal("i64", label.dtype)
    local counts = {}
    for i = 1, 20 do
      local digit = few:get(i)[2]:item()
      counts[digit] = (counts[digit] or 0) + 1
    end
    for digit = 0, 9 do assert.equal(2, counts[digit]) end
  end)

  it("depends on seed and split, not on lt.seed", function()
    local function sum(options)
      options.n = 10
      return data.digits(options).tensors[1]:to("f32"):sum():item()
    end
    lt.seed(1)
    local one = sum {}
    lt.seed(2)
    assert.equal(one, sum {})
    assert.equal(one, sum { seed = 1, split = "train" })
    assert.is_not.equal(one, sum { seed = 2 })
    assert.is_not.equal(one, sum { split = "test" })
  end)

  it("refuses unknown options and splits", function()
    has(error_of(data.digits, { splitt = "test" }), "did you mean 'split'?")
    has(error_of(data.digits, { split = "val" }), "split must be 'train' or 'test': got 'val'")
  end)
end)

describe("data.mnist", function()
  local folder

  local function write(name, bytes)
    local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
    file:write(bytes)
  end

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert.is_true(c.io.make_folder(folder))
  end)

  after_each(function()
    for _, name in ipairs(c.io.list_folder(folder)) do os.remove(folder .. "/" .. name) end
    os.remove(folder)
  end)

  local images <const> = ">I1I1I1I1 I4I4I4 BBBB BBBB"
  local labels <const> = ">I1I1I1I1 I4 BB"

  it("reads a pair of files", function()
    write("train-images-idx3-ubyte",
      images:pack(0, 0, 8, 3, 2, 2, 2, 0, 51, 102, 153, 204, 255, 0, 0))
    write("train-labels-idx1-ubyte", labels:pack(0, 0, 8, 1, 2, 7, 3))
    local ds = data.mnist(folder)
    assert.equal(2, #ds)
    local image, label = table.unpack(ds:get(1))
    assert.same({ 1, 2, 2 }, image.shape)
    assert.near(0.6, image[1][2][2]:item(), 1e-6)
    assert.equal(7, label:item())
    assert.equal("i64", label.dtype)
  end)

  it("names the files that are missing", function()
    local message = error_of(data.mnist, folder, { split = "test" })
    has(message, "data.mnist: no t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (plain or .gz)")
    has(message, folder)
    write("t10k-images-idx3-ubyte", "")
    has(error_of(data.mnist, folder, { split = "test" }), "no t10k-labels-idx1-ubyte (plain")
  end)

  it("refuses files that do not belong together, or are damaged", function()
    write("train-images-idx3-ubyte", images:pack(0, 0, 8, 3, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0))
    write("train-labels-idx1-ubyte", (">I1I1I1I1 I4 B"):pack(0, 0, 8, 1, 1, 7))
    has(error_of(data.mnist, folder), "has 2 images")
    write("train-labels-idx1-ubyte", labels:pack(0, 0, 8, 1, 3, 7, 3))
    has(error_of(data.mnist, folder), "its size and its dimensions do not agree")
    write("train-labels-idx1-ubyte", labels:pack(0, 0, 9, 1, 2, 7, 3))
    has(error_of(data.mnist, folder), "u8 with 1 dimensions was expected")
  end)
end)
