-- spec/dist/world_spec.lua: deterministic = "world": equal bits on any number of ranks.
-- tags: sampled, slow
local child = require "spec.cli.child"
local over = require "spec.dist.over"
local script = require "spec.dist.world"
local support = require "spec.dist.support"

local folder

setup(function() folder = child.folder() end)
teardown(function() child.remove(folder) end)

-- What `ltrain hash` says of the weights after a fit.
local function hash_of(ranks, window, megabytes, way, change)
  local file = ("%s/%d_%d_%s.safetensors"):format(folder, ranks, window, way)
  local code = script(ranks, window, megabytes, file)
  if change then code = change(code) end
  local status, out = support.over(way, ranks, code)
  assert.equal(0, status, out)
  local _, text, err = child.run { "hash", file }
  return text:match "^%x+" or err
end

describe("deterministic = 'world'", function()
  for _, window in ipairs { 1, 3 } do
    it(("gives equal weights on 1, 2 and 4 ranks with windows of %d"):format(window), function()
      local one = hash_of(1, window, 25, "shm")
      assert.equal(64, #one)
      assert.equal(one, hash_of(2, window, 25, "shm"), "2 ranks")
      assert.equal(one, hash_of(4, window, 25, "shm"), "4 ranks")
      assert.equal(one, hash_of(4, window, 0.0001, "shm"), "4 ranks, a bucket a parameter")
    end)
  end

  it("is not what other modes give: there ranks draw and add apart", function()
    local function plain(code)
      return (code:gsub('deterministic = "world"', "deterministic = true"))
    end
    local function hash() return hash_of(2, 1, 25, "shm", plain) end
    local first = hash()
    assert.equal(first, hash()) -- the same run twice
    assert.not_equal(first, hash_of(1, 1, 25, "shm", plain))
  end)

  over({ "shm", "mpi" }, "gives the same where ranks have no sample in a step", function(way)
    local function short(code) return (code:gsub("randn%(75", "randn(17")) end
    assert.equal(hash_of(1, 1, 25, "shm", short), hash_of(4, 1, 25, way, short))
  end)

  over({ "mpi", "ucx", "two hosts" }, "gives the same", function(way)
    assert.equal(hash_of(1, 1, 25, "shm"), hash_of(4, 1, 25, way))
  end)
end)
