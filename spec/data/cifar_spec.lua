-- spec/data/cifar_spec.lua: lt.data.cifar10 and cifar100, of files that the spec writes.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local error_of = require "spec.error_of"
local lt = require "ltrain"

local folder <const> = child.folder()
teardown(function() child.remove(folder) end)

-- Image k of a file: all red k, green 2 k, blue k + 7.
local function image(k)
  return string.char(k):rep(1024) .. string.char(2 * k):rep(1024) .. string.char(k + 7):rep(1024)
end

describe("cifar10", function()
  it("reads the five files of its folder, in order", function()
    local root = folder .. "/cifar-10-batches-bin"
    c.io.make_folder(root)
    for k = 1, 5 do
      child.write(("%s/data_batch_%d.bin"):format(root, k),
        string.char(k) .. image(k) .. string.char(9 - k) .. image(k + 50))
    end
    local set = lt.data.cifar10(folder)
    assert.equal(10, #set)
    local row = set:get(5)
    assert.same({ 3, 32, 32 }, row[1].shape)
    assert.equal(3, row[2]:item())
    local colours = row[1]:view(3, -1):mean(2) * 255
    assert(lt.allclose(lt.tensor { 3.0, 6.0, 10.0 }, colours, { atol = 1e-3 }))
    assert.equal(6, set:get(6)[2]:item())
    child.write(root .. "/test_batch.bin", string.char(4) .. image(9))
    assert.equal(1, #lt.data.cifar10(root, { split = "test" }))
  end)

  it("says what is not there, or has another length", function()
    assert.matches("data.cifar10: cannot open .*none/data_batch_1.bin",
      error_of(lt.data.cifar10, folder .. "/none"))
    child.write(folder .. "/test_batch.bin", "short")
    c.io.make_folder(folder .. "/other")
    child.write(folder .. "/other/test_batch.bin", "short")
    assert.matches("test_batch.bin has 5 bytes: images of 3073 bytes each were expected",
      error_of(lt.data.cifar10, folder .. "/other", { split = "test" }), 1, true)
  end)
end)

describe("cifar100", function()
  it("gives the fine labels", function()
    local root = folder .. "/hundred"
    c.io.make_folder(root)
    child.write(root .. "/train.bin",
      string.char(5, 77) .. image(3) .. string.char(6, 99) .. image(4))
    local set = lt.data.cifar100(root)
    assert.same({ 77, 99 }, { set:get(1)[2]:item(), set:get(2)[2]:item() })
  end)
end)
