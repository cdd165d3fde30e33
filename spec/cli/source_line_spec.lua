-- spec/cli/source_line_spec.lua: the line of the script below an error, on a terminal.
local child = require "spec.cli.child"
local source_line = require "ltrain.core.source_line"

describe("the line that an error names", function()
  local folder <const> = child.folder()
  local path <const> = folder .. "/model.lua"
  child.write(path, [[
local lt = require "ltrain"
	local t = lt.Trainer{max_peochs = 3} -- ö
local y = ö, x:matmul(w)

]] .. ("x"):rep(20000) .. "\nlocal z = \27[2J\n")
  local wide <const> = folder .. "/wide.lua"
  child.write(wide, "local t = {" .. ("12, "):rep(100) .. "x:view(4)}\nx = 1 + ) 2\nx = = 1\n")
  teardown(function() child.remove(folder) end)

  local function shown(text) return source_line(path .. ":" .. text) end

  it("has a caret below what the message speaks of", function()
    assert.equal("2 | \tlocal t = lt.Trainer{max_peochs = 3} -- ö\n  | \t                     ^",
      shown "2: Trainer: unknown option 'max_peochs'; did you mean 'max_epochs'?")
    assert.equal("3 | local y = ö, x:matmul(w)\n  |                ^",
      shown "3: matmul: inner sizes differ: [2, 4] x [2, 3]")
    assert.equal("3 | local y = ö, x:matmul(w)\n  | ^", shown "3: something else is wrong")
    assert.equal("1 | local lt = require \"ltrain\"\n  |            ^",
      shown "1: module.require: no")
  end)

  it("has the caret where the parser stopped", function()
    assert.equal("2 | x = 1 + ) 2\n  |         ^",
      source_line(wide .. ":2: unexpected symbol near ')'"))
    assert.equal("3 | x = = 1\n  | ^", source_line(wide .. ":3: unexpected symbol near '='"))
  end)

  it("is left out where it would not help", function()
    for _, text in ipairs { "4: empty", "5: too long", "6: moves the cursor", "99: not there" } do
      assert.is_nil(shown(text))
    end
    assert.is_nil(source_line("no line at all"))
    assert.is_nil(source_line(wide .. ":1: view: longer than the terminal"))
    assert.is_nil(source_line("/dev/stdin:1: x"))
    assert.is_nil(source_line(folder .. "/none.lua:1: x"))
    assert.is_nil(source_line("ltrain.core.errors:3: x"))
  end)

  it("is shown on a terminal alone", function()
    child.write(folder .. "/s.lua", "local a = 1\nlocal lt = require \"ltrain\"\nlt.zeros(\"x\")\n")
    for _, word in ipairs { "", " run" } do
      local line <const> = ("ltrain%s s.lua"):format(word)
      local code, out = child.on_terminal(line, { env = { TERM = "xterm" }, dir = folder })
      if not code then return pending "script is missing" end
      local _, _, err = child.shell(line .. " || true", { dir = folder })
      assert.matches("ltrain: s%.lua:3: zeros: [^\n]*\n3 | lt%.zeros%(\"x\"%)\r?\n"
        .. "  |           ^\r?\n", out)
      assert.matches("^ltrain: s%.lua:3: zeros: ", err)
      assert.not_matches("3 |", err, 1, true)
    end
  end)
end)
