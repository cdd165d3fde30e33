-- spec/core/tree_spec.lua: ordered walks and the two ways to write a path.

local lt = require "ltrain"
local tree = require "ltrain.core.tree"

describe("tree.keys", function()
  it("puts positions first, then names in alphabetical order", function()
    local keys, mixed = tree.keys({ "x", "y", b = 1, a = 2 })
    assert.same({ 1, 2, "a", "b" }, keys)
    assert.is_true(mixed)
  end)

  it("reports a key that is neither", function()
    local keys, mixed, other = tree.keys({ [true] = 1, a = 1 })
    assert.same({ "a" }, keys)
    assert.is_false(mixed)
    assert.is_true(other)
  end)
end)

describe("tree.path", function()
  it("reads as Lua", function()
    assert.equal("Net.net[1].weight", tree.path("Net", { "net", 1, "weight" }))
    assert.equal('Net["a b"]', tree.path("Net", { "a b" }))
  end)
end)

describe("tree.name", function()
  it("counts positions from 0", function()
    assert.equal("net.0.weight", tree.name({ "net", 1, "weight" }))
  end)
end)

describe("tree.map", function()
  it("keeps the form and gives the keys of each leaf", function()
    local result = tree.map({ x = { 1, 2 }, y = "z" }, function(leaf, keys)
      return tree.name(keys) .. "=" .. leaf
    end)
    assert.same({ x = { "x.0=1", "x.1=2" }, y = "y=z" }, result)
  end)

  it("takes a single leaf for a tree", function()
    assert.equal(6, tree.map(3, function(leaf) return 2 * leaf end))
  end)

  it("leaves objects alone", function()
    local object = setmetatable({ 1 }, {})
    assert.equal(object, tree.map({ object }, function(leaf) return leaf end)[1])
  end)

  it("raises on a table that contains itself, with its path", function()
    local t = { a = {} }
    t.a.b = t
    local _, message = pcall(function() tree.each(t, function() end) end)
    assert.matches("tree_spec%.lua:%d+: tree: tree%.a%.b contains itself", message)
  end)

  it("takes a table met twice, where it is not inside itself", function()
    local shared = { 1 }
    assert.equal(2, #tree.leaves({ shared, shared }))
  end)

  it("raises on a table with positions and names", function()
    assert.error_matches(function() tree.each({ a = { 1, b = 2 } }, function() end) end,
      "tree: tree%.a has both positions and names")
  end)
end)

describe("tree.leaves", function()
  it("lists names and values in order", function()
    local names, values = {}, {}
    for i, leaf in ipairs(tree.leaves({ b = 7, a = { 5, 6 } })) do
      names[i], values[i] = leaf.name, leaf.value
    end
    assert.same({ "a.0", "a.1", "b" }, names)
    assert.same({ 5, 6, 7 }, values)
  end)
end)

describe("lt.hash", function()
  it("takes tables 5,000 deep, by the whole name of what is in them", function()
    local value = { 7 }
    for _ = 2, 5000 do value = { value } end
    local name = ("0."):rep(5000):sub(1, -2)
    assert.equal(require("ltrain.c").runtime.sha256 { name .. " integer 7\n" }, lt.hash(value))
  end)

  it("refuses tables that no stack has room for", function()
    local value = { 7 }
    for _ = 1, 300000 do value = { value } end
    local _, message = pcall(lt.hash, value)
    assert.matches("^spec/core/tree_spec.lua:%d+: hash: tables are nested more than 10000 deep$",
      message)
  end)
end)
