-- spec/data/images_spec.lua: image files as a data set, read in threads of C by loaders.
-- tags: threads
local c = require "ltrain.c"
local child = require "spec.cli.child"
local console = require "ltrain.core.console"
local error_of = require "spec.error_of"
local lt = require "ltrain"
local recorded = require("spec.recorded")("spec/image/recorded.jsonl")

local T <const>, data <const> = lt.transforms, lt.data
local folder <const> = child.folder()
local N <const> = 14

-- Images of different sizes, distinguished by their red.
local function make(name, k)
  lt.seed(k)
  local image = lt.randint(0, 256, { 3, 12 + k % 3, 17 - k % 4 }):to "u8"
  image[1]:fill_(k * 10)
  assert(lt.image.write(folder .. "/" .. name, image))
end

setup(function()
  for _, name in ipairs { "set/b", "set/a/deep", "empty/x" } do
    c.io.make_folder(folder .. "/" .. name)
  end
  for k = 1, N do
    make(("set/%s/%02d.png"):format(k % 3 == 0 and "b" or k % 4 == 0 and "a/deep" or "a", k), k)
  end
  child.write(folder .. "/set/a/notes.txt", "no image")
  child.write(folder .. "/set/readme.txt", "no class")
end)
teardown(function() child.remove(folder) end)

local function chain()
  return T.Compose { T.RandomResizedCrop(8), T.RandomHorizontalFlip {}, T.ToTensor(),
    T.Normalize({ 0.5, 0.4, 0.3 }, { 0.2, 0.3, 0.4 }) }
end

-- All batches of an epoch: a hash of each.
local function hashes(dataset, options, epoch)
  local loader = data.DataLoader(dataset, options)
  loader:set_epoch(epoch or 0)
  local list = {}
  for batch in loader:batches() do list[#list + 1] = lt.hash(batch) end
  return list
end

-- The same data set as a stranger, which loaders ask sample by sample.
local function by_lua(set)
  return setmetatable({ get = function(_, i) return set:get(i) end },
    { __len = function() return #set end })
end

describe("ImageFolder", function()
  it("takes sorted folders as classes, and the images in and below them", function()
    local set = data.ImageFolder(folder .. "/set")
    assert.same({ "a", "b" }, set.classes)
    assert.equal(N, #set)
    assert.equal(folder .. "/set/a/01.png", set:path(1))
    local seen = {}
    for i = 1, N do
      local image, label = set:get(i)
      local k = image[1][1][1]:item() // 10
      assert.equal(k % 3 == 0 and 1 or 0, label:item())
      seen[k] = true
    end
    for k = 1, N do assert(seen[k], k) end
  end)

  it("counts the files that it leaves out, in one warning", function()
    local say <const>, lines = console.say, {}
    console.say = function(line) lines[#lines + 1] = line end
    local set = data.ImageFolder(folder .. "/set")
    console.say = say
    assert.equal(N, #set)
    assert.same({ ("warning: data.ImageFolder: %s/set: 1 of %d files are left out, not being .jpg, "
      .. ".jpeg, .png, .bmp or .webp: 1 .txt"):format(folder, N + 1) }, lines)
  end)

  it("takes .bmp and .webp files", function()
    for _, case in ipairs(recorded) do
      local ending = ({ ["bmp 24 bits"] = "BMP", ["webp lossless"] = "webp" })[case.name]
      if ending then
        c.io.make_folder(folder .. "/other/a")
        child.write(folder .. "/other/a/1." .. ending, (case.file:gsub("%x%x", function(pair)
          return string.char(tonumber(pair, 16))
        end)))
      end
    end
    local set = data.ImageFolder(folder .. "/other")
    assert.same({ 2, { 3, 9, 13 } }, { #set, set:get(2).shape })
  end)

  it("says what is not there", function()
    local here = "spec/data/images_spec.lua"
    local function fails(text, ...)
      local message = error_of(function(f, ...) f(...) return end, ...)
      assert.matches(here, message, 1, true)
      assert.matches(text, message, 1, true)
    end
    fails("data.ImageFolder: cannot list", data.ImageFolder, folder .. "/none")
    fails("data.ImageFolder: there are no folders in", data.ImageFolder, folder .. "/set/b")
    fails("data.ImageFolder: there are no images (.jpg, .jpeg, .png, .bmp, .webp) in " .. folder
      .. "/empty/x", data.ImageFolder, folder .. "/empty")
    fails("data.Images: there are no images", data.Images, { paths = {} })
    fails("data.Images: 1 paths have labels [2]", data.Images,
      { paths = { "a" }, labels = { 1, 2 } })
    fails("data.Images: paths[1] must be a string: got 1", data.Images, { paths = { 1 } })
  end)
end)

describe("a loader of images", function()
  it("gives what get gives, whoever reads: C in threads, C without, Lua", function()
    local set = data.ImageFolder(folder .. "/set", { transform = chain() })
    local options = { batch_size = 4, shuffle = true, seed = 5 }
    for epoch = 0, 1 do
      local expected = hashes(by_lua(set), options, epoch)
      assert.equal(4, #expected)
      assert.same(expected, hashes(set, options, epoch))
      for _, prefetch in ipairs { 0, 1, 5 } do
        local other = { batch_size = 4, shuffle = true, seed = 5, prefetch = prefetch }
        assert.same(expected, hashes(set, other, epoch))
      end
    end
    for _, threads in ipairs { 1, 3 } do
      local other = { batch_size = 4, shuffle = true, seed = 5, num_workers = threads }
      assert.same(hashes(set, options), hashes(set, other))
    end
    assert.is_not.same(hashes(set, options, 0), hashes(set, options, 1))
  end)

  it("gives u8 batches, and images alone where there are no labels", function()
    local paths = {}
    for k = 1, 5 do paths[k] = data.ImageFolder(folder .. "/set"):path(k) end
    local set = data.Images { paths = paths, transform = T.Resize { 4, 5 }, mode = "grey" }
    for batch, index in data.DataLoader(set, { batch_size = 3 }):batches() do
      assert.same({ index == 0 and 3 or 2, 1, 4, 5 }, batch.shape)
      assert.equal("u8", batch.dtype)
      assert(lt.equal(set:get(index * 3 + 1), batch[1]))
    end
  end)

  it("takes labels of any form, and subsets", function()
    local set = data.ImageFolder(folder .. "/set")
    local paths, targets = {}, lt.rand(N, 2)
    for k = 1, N do paths[k] = set:path(k) end
    local images = data.Images { paths = paths, labels = targets, transform = T.Resize { 3, 3 } }
    local subset = data.Subset(data.Subset(images, { 9, 2, 5, 7 }), { 2, 4, 1 })
    for batch in data.DataLoader(subset, { batch_size = 3 }):batches() do
      for row, k in ipairs { 2, 7, 9 } do
        assert(lt.equal(images:get(k), batch[1][row]))
        assert(lt.equal(targets[k], batch[2][row]))
      end
    end
  end)

  it("keys what is random in a subset as get does", function()
    local set = data.ImageFolder(folder .. "/set", { transform = chain() })
    local subset = data.Subset(set, { 3, 1, 9, 8 })
    local options = { batch_size = 2, shuffle = true, seed = 2 }
    assert.same(hashes(by_lua(subset), options), hashes(subset, options))
  end)

  it("makes several views of an image", function()
    local view = chain()
    local set = data.ImageFolder(folder .. "/set", { transform = T.MultiView { view, view } })
    local options = { batch_size = 6, seed = 3 }
    assert.same(hashes(by_lua(set), options), hashes(set, options))
    for batch in data.DataLoader(set, options):batches() do
      assert.same({ batch[2].shape[1], 3, 8, 8 }, batch[1][2].shape)
      assert(not lt.equal(batch[1][1], batch[1][2]))
    end
  end)

  it("runs a chain with a function in it through get", function()
    local calls = 0
    local function double(image)
      calls = calls + 1
      return image * 2
    end
    local set = data.ImageFolder(folder .. "/set",
      { transform = T.Compose { T.Resize { 4, 4 }, T.ToTensor(), double } })
    for batch in data.DataLoader(set, { batch_size = 7 }):batches() do
      assert.same({ 7, 3, 4, 4 }, batch[1].shape)
    end
    assert.equal(N, calls)
  end)

  it("resumes in the middle of an epoch with the same batches", function()
    local set = data.ImageFolder(folder .. "/set", { transform = chain() })
    local options = { batch_size = 3, shuffle = true, seed = 8 }
    local all = hashes(set, options)
    local loader = data.DataLoader(set, options)
    for _, index in loader:batches() do
      if index == 1 then break end
    end
    local state = loader:state_dict()
    local other, rest = data.DataLoader(set, options), {}
    other:load_state_dict(state)
    for batch in other:batches() do rest[#rest + 1] = lt.hash(batch) end
    assert.same({ table.unpack(all, 3) }, rest)
  end)

  it("splits batches among ranks", function()
    local set = data.ImageFolder(folder .. "/set", { transform = chain() })
    local whole = data.DataLoader(set, { batch_size = 4, seed = 1 })
    local parts = {}
    for rank = 0, 1 do
      parts[rank] = data.DataLoader(set, { global_batch_size = 4, seed = 1 })
      parts[rank]:shard(rank, 2, "train")
    end
    local next_a, next_b = parts[0]:batches(), parts[1]:batches()
    for batch in whole:batches() do
      local a, b = next_a(), next_b()
      assert(lt.equal(batch[1], lt.cat { a[1], b[1] }))
      assert(lt.equal(batch[2], lt.cat { a[2], b[2] }))
    end
  end)

  it("names the files whose sizes differ, and what to do", function()
    local set = data.ImageFolder(folder .. "/set")
    local message = error_of(function()
      for _ in data.DataLoader(set, { batch_size = 4 }):batches() do end
    end)
    assert.matches("spec/data/images_spec.lua:%d+: data: images of a batch differ: %[3, %d+, %d+%]"
      .. " of .*%.png and %[3, %d+, %d+%] of .*%.png: let the transform end with one size, as "
      .. "Resize%({h, w}%) or a crop gives %(in sample %d+%)", message)
  end)

  it("names the file that cannot be read, of several the first", function()
    local paths, set = {}, data.ImageFolder(folder .. "/set")
    for k = 1, 8 do paths[k] = set:path(k) end
    paths[5], paths[7] = folder .. "/set/a/notes.txt", folder .. "/none.png"
    for _, prefetch in ipairs { 0, 3 } do
      local loader = data.DataLoader(data.Images { paths = paths, transform = T.Resize { 4, 4 } },
        { batch_size = 8, prefetch = prefetch })
      local message = error_of(function()
        for _ in loader:batches() do end
      end)
      assert.matches("image.read: " .. folder .. "/set/a/notes.txt: neither JPEG, PNG, WebP nor "
        .. "BMP (in sample 5)", message, 1, true)
    end
    assert.matches("notes.txt: neither", error_of(function()
      data.Images { paths = paths }:get(5)
    end), 1, true)
  end)

  it("continues without threads after a fork, and ends early", function()
    local set = data.ImageFolder(folder .. "/set", { transform = chain() })
    local options = { batch_size = 2, shuffle = true, seed = 4 }
    local expected, got = hashes(set, options), {}
    for batch, index in data.DataLoader(set, options):batches() do
      got[#got + 1] = lt.hash(batch)
      if index == 1 then lt.dist.launch(2, function() end) end -- forks: threads stop
    end
    assert.same(expected, got)
    for _, index in data.DataLoader(set, options):batches() do
      if index == 1 then break end
    end
  end)
end)
