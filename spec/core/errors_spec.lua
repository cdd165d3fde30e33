-- spec/core/errors_spec.lua: positions of the user's line, nearest names.

local errors = require "ltrain.core.errors"

local function here()
  return debug.getinfo(2, "l").currentline
end

describe("errors.blame", function()
  it("points at the line of the script that called", function()
    local line = here() + 1
    local ok, message = pcall(function() errors.blame("op: wrong: %d", 3) end)
    assert.is_false(ok)
    assert.equal(("spec/core/errors_spec.lua:%d: op: wrong: 3"):format(line),
      message:match("spec/.*"))
  end)

  it("walks past chunks of the library, also through C functions", function()
    local ours = load("local f = ... ; local ok = f() ; return ok", "=ltrain.core.fake")
    local line
    local function script()
      line = here() + 1
      ours(function() return select(2, pcall(errors.blame, "deep")) end)
    end
    local inner = load("return (require 'ltrain.core.errors').where()", "=ltrain.core.fake")
    local text
    ours(function()
      text = inner()
      line = here() - 1
    end)
    assert.matches("errors_spec%.lua:" .. line .. ": $", text)
    script()
  end)

  it("takes a script whose name begins like ours for a script", function()
    local script = load("return (require 'ltrain.core.errors'.where())", "@ltrain.mine.lua")
    assert.equal("ltrain.mine.lua:1: ", (script()))
  end)

  it("leaves a percent sign alone when nothing is to be formatted", function()
    local _, message = pcall(errors.blame, "100% wrong")
    assert.matches("100%% wrong$", message)
  end)
end)

describe("errors.printable", function()
  it("writes what moves a cursor, or turns the text after it, as Lua does", function()
    assert.equal("a\\27[31mb\\10", errors.printable "a\27[31mb\n")
    assert.equal("a\\u{202E}b\\u{61C}", errors.printable "a\u{202E}b\u{61C}")
    assert.equal("öؤ…", errors.printable "öؤ…")
  end)
end)

describe("errors.nearest", function()
  it("finds a name two changes away", function()
    assert.equal("padding", errors.nearest("pading", { "stride", "padding" }))
    assert.equal("padding", errors.nearest("apdding", { "stride", "padding" }))
  end)

  it("finds nothing three changes away", function()
    assert.is_nil(errors.nearest("pddg", { "padding" }))
  end)

  it("asks for one change in short names", function()
    assert.is_nil(errors.nearest("eps", { "lr" }))
    assert.equal("lr", errors.nearest("lt", { "lr" }))
  end)

  it("prefers the nearer, then the first of the alphabet", function()
    assert.equal("alpha", errors.nearest("alpho", { "alphoo", "alpha", "alphi" }))
    assert.equal("alpho", errors.nearest("alpho", { "alpha", "alpho" }))
  end)
end)

describe("errors.show", function()
  it("quotes strings and cuts long ones", function()
    assert.equal("'a'", errors.show("a"))
    assert.equal(60, #errors.show(("x"):rep(100)) - 2)
  end)

  it("names the class of an object", function()
    local Cat = require "ltrain.core.class".extend(nil, "Cat")
    assert.equal("an object of class Cat", errors.show(Cat()))
    assert.equal("a table", errors.show({}))
  end)
end)

describe("an error text", function()
  it("has control characters as Lua writes them, but for its own lines", function()
    local ok, message = pcall(errors.blame, "op: the name '%s' is\n  wrong", "a\27[2J")
    assert.is_false(ok)
    assert.matches("op: the name 'a\\27%[2J' is\n  wrong$", message)
    assert.equal([['a\10b']], errors.show "a\nb")
  end)
end)
