-- spec/core/foreign_syntax_spec.lua: what is said of lines of Python and C.
local remedies = require "ltrain.core.lua_error_hints"

local ASCII <const> = "; outside of strings and comments a Lua script is plain ASCII text: letters "
  .. "a to z, digits, _, and \" or ' around strings"

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
  { "i++", "; write i = i + 1" },
  { "if a != b then end", "; write ~=" },
  { "if !a then end", "; write not" },
  { "if a && b then end", "; write and" },
  { "if a || b then end", "; write or" },
  { "local y = x ** 2", "; a power is x ^ 2" },
  { "local x = [1, 2]", "; a list is {1, 2}" },
  { "if a = 2 then end", "; equality is ==" },
  { "for i = 1, 2:", "; a block is if ... then ... end, for ... do ... end" },
  { "with lt.no_grad() do end", "; write local _ <close> = lt.no_grad()" },
  { 'local x = f(2, device = "cuda")',
    "; arguments with names are a table: f(x, {device = value})" },
  { "local x = f(0, (2, 3))", "; a list is {2, 3}" },
  { "local y = x[:, 1]", "; a part of a tensor is x[{lt.all, 2}], x[{{1, 3}}]" },
  { "local y = x[1, 2]", "; an element is x[{1, 2}]" },
  { "local y = x @ x", "; a product of matrices is x:matmul(y)" },
  { "print(f'a' f'b')", "; write ('loss %g'):format(loss)" },
  { "while x:\n  i = 1", "; the line before ends with a colon: a block is "
    .. "if ... then ... end, for ... do ... end" },
  { "print(\u{201C}a\u{201D})", ASCII }, { "local\u{A0}y = 1", ASCII },
  { "local gr\u{F6}sse = 1", ASCII }, { "\xFF\xFEl\0o\0", ASCII },
  { "local x = 1 1", "" },
  { "local s = 'a' 'b'", "" },
}

describe("a syntax error", function()
  for _, row in ipairs(ROWS) do
    local line, expected = table.unpack(row)
    it("at " .. line:gsub("%c", " "), function()
      local text = "local a, b, i, x = 1, 2, 3, 4\n" .. line .. "\n"
      local chunk, message = load(text, "@script.lua")
      assert.is_nil(chunk)
      assert.equal(message .. expected, remedies(message, text))
    end)
  end
end)
