-- spec/break/modules_spec.lua: modules of odd make: inside themselves, with names that clash.
local lt = require "ltrain"

local nn = lt.nn

local function message_of(fn)
  local ok, message = pcall(fn)
  assert.is_false(ok, "nothing was raised")
  return message
end

describe("a module inside itself", function()
  local outer = lt.Module()
  outer.inner = lt.Module()
  outer.inner.outer = outer

  it("prints as far as that", function()
    assert.equal("Module(\n  (inner): Module(\n    (outer): Module(...)\n  )\n)", tostring(outer))
    assert.equal("Module(\n  (inner): Module(\n    (outer): Module(...)\n  )\n)", tostring(outer))
  end)

  it("is an error that names the field where it is walked", function()
    assert.matches("Module.inner.outer: a module inside itself", message_of(function()
      local list = outer:parameters()
      return list
    end), 1, true)
  end)
end)

describe("two tensors of one name", function()
  it("are an error: a file would hold one of them", function()
    local model = lt.Module()
    model["a.b"] = nn.Linear(1, 1)
    model.a = { b = nn.Linear(1, 1) }
    assert.matches("modules_spec.lua:%d+: .*both called 'a.b.weight' in state_dict: rename a field",
      message_of(function()
        local state = model:state_dict()
        return state
      end))
  end)
end)

describe("a misspelt word", function()
  it("with two letters swapped is one change away, of short words too", function()
    assert.matches("nn.Linear: unknown option 'bais'; did you mean 'bias'%?$",
      message_of(function()
        local layer = nn.Linear(4, 1, { bais = false })
        return layer
      end))
    assert.matches("did you mean 'exp'", message_of(function() return lt.ones(1):epx() end))
  end)

  it("that is short gets no far words", function()
    assert.matches("no field or method 'foo'$", message_of(function()
      local value = lt.ones(1).foo
      return value
    end))
  end)
end)
