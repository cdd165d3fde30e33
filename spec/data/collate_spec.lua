-- spec/data/collate_spec.lua: collate ends, whatever it is given.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local collate <const> = lt.data.collate

describe("data.collate", function()
  it("refuses tables that contain themselves, at once", function()
    local sample = { x = 1 }
    sample.me = sample
    assert.matches("collate: tables more than 100 deep at 'me%.me%..*' of sample 1: does one "
      .. "contain itself%?", error_of(collate, { sample, sample }))
    local list = {}
    list[1], list[2] = list, list
    assert.matches("collate: tables more than 100 deep", error_of(collate, { list }))
    assert.matches("collate: tables more than 100 deep", error_of(collate, list))
  end)

  it("takes tables in tables", function()
    local deep = { 1 }
    for _ = 1, 50 do deep = { deep } end
    local batch = collate { deep, deep }
    for _ = 1, 50 do batch = batch[1] end
    assert.same({ 1, 1 }, batch[1]:tolist())
  end)

  it("wants a list of samples, and as many positions", function()
    local endless = setmetatable({}, { __len = function() return 1 << 40 end,
      __index = function() return 1 end })
    for _, wrong in ipairs { 5, "x", {}, endless, lt.ones(2) } do
      assert.matches("collate: needs a list of samples, got ", error_of(collate, wrong))
    end
    for _, wrong in ipairs { 5, {}, { 1 }, endless } do
      assert.matches("collate: positions: needs one for each of 2 samples, got ",
        error_of(collate, { 1, 2 }, wrong))
    end
    assert.same({ 1, 2 }, collate({ 1, 2 }, { 7, 9 }):tolist())
  end)
end)
