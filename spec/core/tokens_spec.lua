-- spec/core/tokens_spec.lua: the tokens of texts in Lua, whole and unfinished.
local tokens = require "ltrain.core.tokens"

local function shown(list)
  local parts = {}
  for i, token in ipairs(list) do
    parts[i] = ("%s %d %s%s"):format(token.kind, token.line, token.text,
      token.whole and "" or " ...")
  end
  return parts
end

describe("tokens", function()
  it("are words, numbers, strings, signs and comments, with their lines", function()
    assert.same({ "keyword 1 local", "name 1 x1", "sign 1 =", "number 1 0x1p-4", "sign 1 //",
      "number 1 3e-2", "sign 1 ..", "string 1 'a\\'b'", "comment 1 -- c", "string 2 [=[ ]]\n]=]",
      "sign 3 ...", "comment 3 --[[ d\n]]", "sign 4 ~=" },
      shown(tokens.of "local x1 = 0x1p-4 // 3e-2 ..'a\\'b' -- c\n[=[ ]]\n]=] ... --[[ d\n]] ~="))
  end)

  it("may lack their ends", function()
    assert.same({ "string 1 'abc ...", "name 2 x" }, shown(tokens.of "'abc\nx"))
    assert.same({ "string 1 \"ab\\ ..." }, shown(tokens.of "\"ab\\"))
    assert.same({ "string 1 [[ab ..." }, shown(tokens.of "[[ab"))
    assert.same({ "comment 1 --[[ab ..." }, shown(tokens.of "--[[ab"))
    assert.equal(2, tokens.depth "f(function() -- (\n'('")
  end)

  it("of a file are without comments and its first line with #", function()
    assert.same({ "name 2 x", "string 2 'a\\z\n  b'", "name 3 y" },
      shown(tokens.of_file "#!/bin/ltrain (\nx 'a\\z\n  b' y -- c"))
    assert.same({ "sign 1 #", "name 1 t" }, shown(tokens.of "#t"))
  end)
end)
