-- spec/data/bounds_spec.lua: numbers that no data set has: refused at the line that gives them, and
-- never the place of a byte.

local lt = require "ltrain"
local error_of = require "spec.error_of"
local has = require "spec.has"
local numbers = require "spec.data.numbers"

local data <const> = lt.data
local HERE <const> = "spec/data/bounds_spec.lua:%d+: "
local BELOW <const> = { -1, -2, -100000000, math.mininteger }
local NO_INTEGER <const> = { 2.5, "x", {}, true }

local function take(loader, position)
  local n = 0
  for _ in loader:batches(position) do n = n + 1 end
  return n
end

local function state(position)
  return { epoch = 0, position = position, seed = 1 }
end

for name, make in pairs { ["gathered in C"] = numbers.tensors, ["read by Lua"] = numbers.list } do
  describe("data.DataLoader, samples " .. name, function()
    local function new(options) return data.DataLoader(make(10), options or { batch_size = 3 }) end

    it("begins at no batch before the first", function()
      for _, position in ipairs(BELOW) do
        assert.matches(HERE .. "DataLoader:batches: position must be at least 0: got %-",
          error_of(take, new(), position))
      end
      for _, position in ipairs(NO_INTEGER) do
        assert.matches(HERE .. "DataLoader:batches: position must be an integer: got ",
          error_of(take, new(), position))
      end
      assert.equal(0, take(new(), math.maxinteger))
    end)

    it("takes no state from before the first sample or of another type", function()
      for _, position in ipairs(BELOW) do
        local function load() new():load_state_dict(state(position)) end
        assert.matches(HERE .. "DataLoader: state: position must be at least 0: got %-",
          error_of(load))
      end
      for field, wrong in pairs { epoch = "1", position = 2.5, seed = {}, samples = -1 } do
        local function load()
          local given = state(0)
          given[field] = wrong
          new():load_state_dict(given)
        end
        assert.matches(HERE .. "DataLoader: state: " .. field .. " must be ", error_of(load))
        assert.matches("DataLoader: state: ", error_of(new().batches_before, new(), state(-1)))
      end
    end)

    it("resumes behind no sample that the epoch does not have", function()
      local loader = new()
      loader:load_state_dict(state(11))
      has(error_of(take, loader), "the state was taken after sample 11, the epoch has 10 samples")
      loader:load_state_dict(state(math.maxinteger))
      assert.matches("the epoch has 10 samples", error_of(take, loader))
      loader:load_state_dict(state(10))
      assert.equal(0, take(loader))
    end)

    it("is shared by ranks that can be", function()
      for _, rank in ipairs { -1, 2, math.maxinteger, math.mininteger, 0.5 } do
        local function shard() new():shard(rank, 2) end
        assert.matches(HERE .. "DataLoader:shard: rank must be ", error_of(shard))
      end
      for _, world in ipairs { 0, -2, math.maxinteger, "2" } do
        local function shard() new():shard(0, world) end
        assert.matches(HERE .. "DataLoader:shard: world must be ", error_of(shard))
      end
    end)

    it("has batches of a size that can be multiplied", function()
      for _, option in ipairs { "batch_size", "global_batch_size" } do
        local function make_it() new { [option] = math.maxinteger } end
        assert.matches(option .. " must be at most 1099511627776: got 9223372036854775807",
          error_of(make_it))
        assert.equal(1, take(new { [option] = 1 << 40 }))
        local loader = new { [option] = 1 << 40 }
        loader:shard(1, 1 << 20)
        assert.equal(1, #loader)
      end
    end)

    it("whose fields were set by hand reads nothing that is not there", function()
      for _, field in ipairs { "batch_size", "prefetch", "epoch" } do
        for _, value in ipairs { -1, 0, math.mininteger, math.maxinteger } do
          local loader = new()
          loader[field] = value
          local ok, n = pcall(take, loader)
          assert.is_true(not ok or n == 4, field)
        end
      end
    end)
  end)
end

describe("a data set", function()
  local function of_length(n)
    return setmetatable({ get = function(_, i) return i end }, { __len = function() return n end })
  end

  it("has a length that can be counted", function()
    for _, n in ipairs { -1, math.maxinteger, 1 << 61, (1 << 61) + 1, 2.5 } do
      assert.matches("#dataset must be ", error_of(data.DataLoader, of_length(n)))
      assert.matches("#dataset must be ", error_of(data.Subset, of_length(n), { 1 }))
    end
  end)

  it("has no sampler whose length is not a count of entries", function()
    for _, n in ipairs { -1, math.maxinteger, 1 << 61, (1 << 61) + 1 } do
      local sampler = setmetatable({}, { __len = function() return n end })
      local loader = data.DataLoader(numbers.list(4), { sampler = sampler })
      assert.matches("a count of samples is in 0..1099511627776: got ", error_of(take, loader))
    end
  end)
end)
