-- spec/nn/functional_spec.lua: lt.nn.functional has the operations, and says what it has not.
local lt = require "ltrain"

describe("nn.functional", function()
  local F = lt.nn.functional

  it("has the functions of lt, and nothing that cannot be called", function()
    assert.equal(lt.relu, F.relu)
    for name, fn in pairs(F) do
      assert.equal("function", type(fn), name)
      -- lt.unfold is Tensor.unfold: windows of one dim.
      if name ~= "unfold" and name ~= "fold" then assert.equal(lt[name], fn, name) end
    end
  end)

  it("raises at a name that is not there, with the nearest one", function()
    assert.error_matches(function() return F.reluu end,
      "nn.functional: there is no 'reluu'; did you mean 'relu'%?")
    assert.error_matches(function() return F.all end, "nn.functional: there is no 'all'")
  end)
end)
