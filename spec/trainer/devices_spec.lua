-- spec/trainer/devices_spec.lua: the forms that the Trainer's `devices` takes, as Lightning's tests
-- list them, of a machine with eight.
local devices_of = require "ltrain.trainer.setup.devices"

local function text_of(value, one)
  local list, why = devices_of(value, 8, one)
  return list and table.concat(list, " ") or why
end

describe("devices", function()
  it("takes a number of devices, -1 for all", function()
    assert.equal("0 1 2", text_of(3))
    assert.equal("0 1 2", text_of "3")
    assert.equal("0 1 2 3 4 5 6 7", text_of(-1))
    assert.equal("0 1 2 3 4 5 6 7", text_of " -1 ")
    assert.equal("0", text_of(1.0))
  end)

  it("takes all of them for 'auto', or the first where there can be one", function()
    assert.equal("0 1 2 3 4 5 6 7", text_of "auto")
    assert.equal("0", text_of("auto", true))
  end)

  it("takes lists of numbers", function()
    assert.equal("0 2", text_of { 0, 2 })
    assert.equal("0", text_of { 0 })
    assert.equal("7 1", text_of { 7, 1 })
    assert.equal("1 3", text_of "1, 3")
    assert.equal("2", text_of "2,")
    assert.equal("2 5", text_of "2, 5, ")
  end)

  it("says what is wrong with others", function()
    for _, value in ipairs { 0, "0", -2, "-2" } do
      assert.matches("^write how many %(%-1: all%), or a list", text_of(value))
    end
    for _, value in ipairs { "", "two", "1,,2", ",", "1;2", 0.5 } do
      assert.matches("^write how many %(%-1: all%), 'auto', or a list", text_of(value))
    end
    assert.matches("^the list is empty", text_of {})
    for _, value in ipairs { { -1 }, { "0" }, { 0, 0 }, { true }, { a = 1 }, { 0.5 } } do
      assert.equal("must be a list of distinct numbers from 0 to 7", text_of(value))
    end
    assert.equal("must be a list of distinct numbers from 0 to 7", text_of "3, 3")
    assert.equal("device 8 does not exist: there are 0 to 7", text_of { 0, 8 })
    assert.equal("there are 8", text_of(9))
  end)
end)
