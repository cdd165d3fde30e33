-- spec/mistakes/prompt_spec.lua: what is entered wrongly at the prompt, and what it answers.
--
-- A row is what is wrong, the lines that are entered, and what is printed on standard error.
local child = require "spec.cli.child"

local ROWS <const> = {
  { "an undefined name", { "xx + 1" },
    "stdin:1: attempt to perform arithmetic on a nil value (global 'xx')" },
  { "a field of an undefined name", { "xx.y" },
    "stdin:1: attempt to index a nil value (global 'xx')" },
  { "nn of Python", { "nn.Linear(2, 3)" },
    "stdin:1: attempt to index a nil value (global 'nn'); write local nn = lt.nn" },
  { "exit()", { "exit()" },
    "stdin:1: attempt to call a nil value (global 'exit'); write os.exit()" },
  { "a local of the line before", { "local y = 1", "y + 1" },
    "stdin:1: attempt to perform arithmetic on a nil value (global 'y')" },
  { "self outside of a method", { "self.fc" },
    "stdin:1: attempt to index a nil value (global 'self'); write function Class:method(...), "
    .. "with a colon, to have self" },
  { "a misspelt method", { "lt.zeros(2):vew(1, 2)" },
    "stdin:1: tensor: no field or method 'vew'; did you mean 'view'?" },
  { "a misspelt function", { "lt.zeroes(2)" },
    "stdin:1: ltrain: there is no lt.zeroes; did you mean 'zeros'?" },
  { "a shape that does not fit", { "lt.nn.Linear(2, 3)(lt.ones(4))" },
    "stdin:1: linear: the last dim of x is not weight's: [4] x [3, 2] [out, in] (in Linear)" },
  { "import", { "import torch" },
    "stdin:1: syntax error near 'torch'; write local torch = require \"torch\"" },
  { "+=", { "x = 1", "x += 1" },
    "stdin:1: syntax error near '+'; there is no +=: write x = x + ..." },
  { "a list in brackets", { "x = [1, 2]" },
    "stdin:1: unexpected symbol near '['; a list is {1, 2}" },
  { "!=", { "if 1 != 2 then end" }, "stdin:1: 'then' expected near '!'; write ~=" },
  { "a statement that the end of input cuts", { "for i = 1, 2 do" },
    "stdin:1: 'end' expected near <eof>" },
  { "an expression that the end of input cuts", { "x = (" },
    "stdin:1: unexpected symbol near <eof>" },
  { "a text without its end", { "x = 'abc" }, "stdin:1: unfinished string near <eof>" },
  { "a misspelt command", { ":hlp" },
    ":hlp: no such command; did you mean 'help'?; :help lists them" },
  { "a command of the debugger", { ":step" }, ":step: no such command; :help lists them" },
  { "help on a misspelt name", { ":help nn.Linera" },
    ":help: nothing is known of 'nn.Linera'; did you mean 'Linear'?" },
  { ":load without a file", { ":load" }, ":load: which file?" },
  { ":load of a file that is missing", { ":load nowhere.lua" },
    ":load: cannot open nowhere.lua: No such file or directory" },
  { ":load of a folder", { ":load /" }, ":load: cannot read /: Is a directory" },
  { ":reload before :load", { ":reload" }, ":reload: no file was loaded" },
  { ":time without an expression", { ":time" }, ":time: which expression?" },
}

describe("a mistake at the prompt:", function()
  for _, row in ipairs(ROWS) do
    local what, lines, expected = table.unpack(row)
    it(what, function()
      local code, _, err = child.run({ "-i" }, { stdin = table.concat(lines, "\n") .. "\n" })
      assert.equal(expected .. "\n", err)
      assert.equal(0, code)
    end)
  end
end)
