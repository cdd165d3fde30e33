-- spec/core/class_spec.lua: classes, inheritance, metamethods.

local class = require "ltrain.core.class"

describe("class", function()
  it("runs init with the arguments of the call", function()
    local Point = class.extend(nil, "Point")
    function Point:init(x, y) self.x, self.y = x, y end
    local p = Point(3, 4)
    assert.same({ 3, 4 }, { p.x, p.y })
  end)

  it("inherits methods and init", function()
    local Animal = class.extend(nil, "Animal")
    function Animal:init(name) self.name = name end
    function Animal:call() return self.name .. " calls" end
    local Dog = class.extend(Animal, "Dog")
    function Dog:bark() return self:call() .. " loudly" end
    assert.equal("Rex calls loudly", Dog("Rex"):bark())
    assert.equal(Animal, Dog.super)
  end)

  it("inherits metamethods", function()
    local Words = class.extend(nil, "Words")
    function Words:__len() return 7 end
    local More = class.extend(Words, "More")
    assert.equal(7, #More())
  end)

  it("recognises its own objects and those of classes below", function()
    local A = class.extend(nil, "A")
    local B = class.extend(A, "B")
    assert.is_true(class.is_a(B(), A))
    assert.is_false(class.is_a(A(), B))
    assert.is_false(class.is_a({}, A))
    assert.is_false(class.is_a("text", A))
    assert.is_false(class.is_a(B, A))
    assert.is_true(class.is_class(B, A))
    assert.equal(B, class.of(B()))
  end)

  it("prints its name", function()
    assert.equal("class Net", tostring(class.extend(nil, "Net")))
  end)

  it("needs a name", function()
    local _, message = pcall(function() class.extend(nil) end)
    assert.matches("class_spec%.lua:%d+: extend: a class needs a name: got nil", message)
  end)

  it("gives nil for an absent field", function()
    assert.is_nil(class.extend(nil, "A")().anything)
  end)
end)
