-- spec/cli/plain_spec.lua: without a command word the binary behaves as stock `lua` does.
-- tags: slow
local child = require "spec.cli.child"

describe("ltrain without a word", function()
  local folder

  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  local function run(arguments, options)
    options = options or {}
    options.dir = folder
    return child.run(arguments, options)
  end

  it("runs a script with arg and ..., and skips a #! line", function()
    child.write(folder .. "/s",
      "#!/usr/bin/env ltrain\nprint(arg[0], arg[1], arg[-1] ~= nil, ...)\n")
    local status, out = run { "s", "one" }
    assert.equal(0, status)
    assert.equal("s\tone\ttrue\tone\n", out)
  end)

  it("runs standard input", function()
    assert.equal("in\t1\n", select(2, run({ "-", "1" }, { stdin = "print('in', ...)" })))
    assert.equal("in\n", select(2, run({}, { stdin = "print('in')" })))
  end)

  it("has the library's warnings", function()
    local status, _, err = run { "-e", "require('ltrain').nn.LSTM(2, 3, {dropout = 0.5})" }
    assert.equal(0, status)
    assert.matches("^ltrain: warning: nn.LSTM: dropout = 0.5 has no effect: ", err)
  end)

  it("does -e and -l in order", function()
    child.write(folder .. "/m.lua", "return {n = 7}")
    local status, out, err = run { "-e", "x = 1", "-l", "m", "-eprint(x, m.n)" }
    assert.equal(0, status, err)
    assert.equal("1\t7\n", out)
  end)

  it("says its version", function()
    for _, flag in ipairs { "-v", "--version" } do
      local status, out = run { flag }
      assert.equal(0, status)
      assert.matches("^ltrain %d+%.%d+%.%d+ %(Lua 5%.4%.%d+%)\n$", out)
    end
  end)

  it("says what words there are, and what each takes", function()
    local status, out = run { "--help" }
    assert.equal(0, status)
    for line in out:gmatch("[^\n]+") do assert.is_true(utf8.len(line) <= 80, line) end
    for _, word in ipairs(require "ltrain.cli.commands".list) do
      assert.matches("\n  ltrain " .. word.name .. " ", out, 1, true)
      local one_status, page = run { word.name, "--help" }
      assert.equal(0, one_status)
      assert.matches("^usage: ltrain " .. word.name, page)
      for _, row in ipairs(word.options) do
        if not row.instead then assert.matches("--" .. row.name, page, 1, true) end
      end
      for line in page:gmatch("[^\n]+") do assert.is_true(utf8.len(line) <= 80, line) end
    end
  end)

  it("lists the Trainer's options in the help of words that take them", function()
    local _, page = run { "run", "--help" }
    for name, row in pairs(require "ltrain.trainer.setup.options") do
      if require "ltrain.cli.arguments".is_plain(row) then
        assert.matches("  --" .. name .. " ", page, 1, true)
      end
    end
  end)

  it("ends with 1 and the user's frames after an error", function()
    child.write(folder .. "/s.lua", "local function f(x) return x.y end\nprint(f(nil))\n")
    local status, out, err = run { "s.lua" }
    assert.equal(1, status)
    assert.equal("", out)
    assert.equal("ltrain: s.lua:1: attempt to index a nil value (local 'x')\nstack traceback:\n"
      .. "\ts.lua:1: in local 'f'\n\ts.lua:2: in main chunk\n", err)
  end)

  it("reports error values that are not strings", function()
    local _, _, err = run { "-e", "error({})" }
    assert.equal("ltrain: (command line):1: (error object is a table value)\n", err)
    _, _, err = run { "-e", "error(setmetatable({}, {__tostring = function() return 'mine' end}))" }
    assert.equal("ltrain: mine\n", err)
  end)

  it("shows the first fields of an error value that is a plain table", function()
    local function shown(code)
      return select(3, run { "-e", code })
        :match("^ltrain: %(command line%):1: %(error object is a table value: (.*)%)\n$")
    end
    assert.equal("{'x', code = 3, ok = false, why = a table}",
      shown "error{'x', why = {}, code = 3, ok = false}")
    assert.equal("{[3] = '" .. ("y"):rep(57) .. "...'}", shown "error{[3] = ('y'):rep(80)}")
    local fields = {}
    for k = 1, 9 do fields[k] = ("k%d = %d"):format(k, k) end
    local text = table.concat(fields, ", ")
    assert.equal("{" .. text:gsub(", k9 = 9", ", ...}"), shown("error{" .. text .. "}"))
    assert.is_nil(shown "error(setmetatable({secret = 1}, {}))")
  end)

  it("leaves os.exit to the script", function()
    assert.equal(7, (run { "-e", "os.exit(7)" }))
    assert.equal(1, (run { "-e", "os.exit(false, true)" }))
  end)

  it("runs LUA_INIT unless -E is given", function()
    local options = { env = { LUA_INIT = "print('init')" } }
    assert.equal("init\nx\n", select(2, run({ "-e", "print('x')" }, options)))
    assert.equal("x\n", select(2, run({ "-E", "-e", "print('x')" }, options)))
  end)

  it("prints warnings after -W", function()
    local code <const> = "warn('careful')"
    assert.matches("ltrain: warning: careful", select(3, run { "-W", "-e", code }), 1, true)
    assert.equal("", select(3, run { "-e", code }))
  end)

  it("finishes its output before it complains", function()
    child.write(folder .. "/s.lua", "io.write('out ') error('x')")
    os.execute(("cd %s && %s s.lua >both 2>&1"):format(folder, os.getenv("LTRAIN") or arg[-1]))
    local file <close> = assert(io.open(folder .. "/both"))
    assert.equal("out ltrain: s.lua:1: x\n", file:read("a"))
  end)
end)
