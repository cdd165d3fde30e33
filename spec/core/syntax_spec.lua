-- spec/core/syntax_spec.lua: what is said of lines of Python and C.
local remedies = require "ltrain.core.remedies"

-- A line, and what stands behind the parser's own words.
local ROWS <const> = {
  { "import numpy as np", '; write local numpy = require "numpy"' },
  { "from torch import nn", '; write local m = require "torch"' },
  { "def f(x):", "; write function f(...) ... end" },
  { "class Net(Module):", '; write local Net = lt.Module:extend("Net")' },
  { "if x then y() elif z then end", "; write elseif ... then" },
  { "f = lambda x, y: x + y", "; write function(x, y) return ... end" },
  { "self.n += 1", "; there is no +=: write self.n = self.n + ..." },
  { "x *= 2", "; there is no *=: write x = x * ..." },
  { "x := 3", "; write x = ..." },
  { "i++", "; write i = i + 1" },
  { "if a != b then end", "; write ~=" },
  { "if !a then end", "; write not" },
  { "if a && b then end", "; write and" },
  { "if a || b then end", "; write or" },
  { "local y = x ** 2", "; a power is x ^ 2" },
  { "local x = [1, 2]", "; a list is {1, 2}" },
  { "if a = 2 then end", "; equality is ==" },
  { "while a = 2 do end", "; equality is ==" },
  { "for i = 1, 2:", "; a block is if ... then ... end, for ... do ... end" },
  { "local x = 1 1", "" },
  { "local s = 'a' 'b'", "" },
}

describe("a syntax error", function()
  for _, row in ipairs(ROWS) do
    local line, expected = table.unpack(row)
    it("at " .. line, function()
      local text = "local a, b, i, x = 1, 2, 3, 4\n" .. line .. "\n"
      local chunk, message = load(text, "@script.lua")
      assert.is_nil(chunk)
      assert.equal(message .. expected, remedies(message, text))
    end)
  end
end)
