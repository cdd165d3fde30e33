-- spec/build/lint_spec.lua: what tools/lint_tree.lua finds of requires, of circles of files in C,
-- and of fields of the state of a run: in this tree nothing.
-- tags: half, slow, unsanitized
local child = require "spec.cli.child"
local shell = require "spec.build.shell"

local ROOT <const> = os.getenv("LT_ROOT") or "."

-- A tree of files in stdlib/, by name, or of those in C by their path; returns what the lint says
-- of it.
local function said_of(files)
  local folder = child.folder()
  for name, text in pairs(files) do
    local path = name:find "%.[ch]$" and name or "stdlib/" .. name .. ".lua"
    os.execute(("mkdir -p '%s/stdlib' '%s/%s'"):format(folder, folder, path:match "^(.-)[^/]*$"))
    child.write(folder .. "/" .. path, text)
  end
  local status, out = shell.run("cd '%s' && lua5.4 \"%s/tools/lint_tree.lua\"", folder,
    ROOT == "." and "$OLDPWD" or ROOT)
  child.remove(folder)
  return status, out
end

-- What a part of the lint finds in this tree.
local function faults_of(part)
  local faults = {}
  dofile(("%s/tools/%s.lua"):format(ROOT, part))(function(...)
    faults[#faults + 1] = string.format(...)
  end)
  return faults
end

describe("the lint of circles in C", function()
  it("finds nothing wrong in this tree", function()
    assert.same({}, faults_of "lint_circles")
  end)

  it("refuses files that call each other, through whatever others", function()
    local status, out = said_of {
      ["runtime/io/a.c"] = "void lt_a(void) {\n  lt_b();\n}\n",
      ["runtime/io/b.c"] = "void lt_b(void) { lt_c(); }\n",
      ["runtime/io/c.c"] = "bool lt_c(void) {\n  return each(lt_a);\n}\n",
    }
    assert.equal(1, status)
    assert.matches("runtime/io/a.c (lt_b) -> runtime/io/b.c (lt_c) -> runtime/io/c.c (lt_a) -> "
      .. "runtime/io/a.c: files use each other in a circle", out, 1, true)
  end)

  it("takes functions of headers for a part of who calls them", function()
    local header = "/* runtime/io/b.h: b. */\n#ifndef LT_IO_B_H\n#define LT_IO_B_H\n"
      .. "void lt_b(void);\nstatic inline void lt_twice(void) {\n  lt_b();\n  lt_b();\n}\n#endif\n"
    local _, out = said_of {
      ["runtime/io/b.h"] = header,
      ["runtime/io/a.c"] = "void lt_a(void) {\n  lt_twice();\n}\n",
      ["runtime/io/b.c"] = "void lt_b(void) {\n  lt_a();\n}\n",
    }
    assert.matches("runtime/io/a.c (lt_b) -> runtime/io/b.c (lt_a)", out, 1, true)
  end)

  it("lets a file call those below it, and names stand in comments and texts", function()
    local status, out = said_of {
      ["runtime/io/a.c"] = "/* lt_b */\nvoid lt_a(void) { say(\"lt_b\"); }\n",
      ["runtime/io/b.c"] = "void lt_b(void) {\n  lt_a();\n}\n",
    }
    assert.equal(0, status, out)
  end)
end)

describe("the lint of requires", function()
  it("finds nothing wrong in this tree", function()
    assert.same({}, faults_of "lint_requires")
  end)

  it("lets a room require what is below it", function()
    local status, out = said_of {
      ["optim/A"] = 'local x = require "ltrain.nn.B"', ["nn/B"] = 'require "ltrain.core.c"',
      ["core/c"] = 'local c = require "ltrain.c" -- require "ltrain.nn.B"',
    }
    assert.equal(0, status, out)
  end)

  it("refuses a require of a room that is above", function()
    local status, out = said_of { ["core/a"] = '\nlocal x = require "ltrain.nn.B"', ["nn/B"] = "" }
    assert.equal(1, status)
    assert.matches("stdlib/core/a.lua:2: core must not require nn", out, 1, true)
  end)

  it("refuses one within a function, or of a name that is put together", function()
    local _, out = said_of {
      ["core/a"] = 'return function() return require("ltrain.nn.B").x end',
      ["data/c"] = 'local d = require("ltrain.trainer." .. ...)', ["nn/B"] = "",
    }
    assert.matches("stdlib/core/a.lua:1: core must not require nn", out, 1, true)
    assert.matches("stdlib/data/c.lua:1: data must not require trainer", out, 1, true)
  end)

  it("refuses files that require each other in a circle", function()
    local status, out = said_of {
      ["core/a"] = 'require "ltrain.core.b"', ["core/b"] = 'require "ltrain.core.c"',
      ["core/c"] = 'return function() require "ltrain.core.a" end',
    }
    assert.equal(1, status)
    assert.matches("stdlib/core/a.lua -> stdlib/core/b.lua -> stdlib/core/c.lua -> "
      .. "stdlib/core/a.lua: files require each other in a circle", out, 1, true)
  end)

  it("refuses a file that is not there, a room that nobody knows, and a name from elsewhere",
    function()
      local _, out = said_of {
        ["core/a"] = 'require "ltrain.core.lost"', ["attic/b"] = "",
        ["nn/C"] = "return require(name)",
      }
      assert.matches("stdlib/core/a.lua:1: there is no ltrain.core.lost", out, 1, true)
      assert.matches("stdlib/attic/b.lua: no such room", out, 1, true)
      assert.matches("stdlib/nn/C.lua:1: require what is named here", out, 1, true)
    end)
end)

describe("the lint of the binding", function()
  it("refuses what reads a table without looking whether it is one", function()
    local status, out = said_of {
      ["lua/bind/a.c"] = "lua_rawgeti(L, 2, k);\nlua_rawgeti(L, LUA_REGISTRYINDEX, k);\n"
        .. "while (lua_next(L, -2) != 0) {}\n",
    }
    assert.equal(1, status)
    assert.matches("lua/bind/a.c:1: lua_rawgeti trusts its table: use lt_raw_geti", out, 1, true)
    assert.matches("lua/bind/a.c:3: lua_next trusts its table: use lt_raw_next", out, 1, true)
    assert.matches(" 2 faults", out, 1, true)
  end)

  it("lets what is new be written, not an argument", function()
    local _, out = said_of { ["lua/bind/a.c"] = "lua_rawseti(L, -2, k);\nlua_rawset(L, table);\n" }
    assert.matches("lua/bind/a.c:2: lua_rawset trusts its table: use lt_raw_set", out, 1, true)
    assert.matches(" 1 faults", out, 1, true)
  end)
end)

describe("the lint of a run's state", function()
  local STATE <const> = [[
local function new_loop()
  return {
    batch = nil, -- fit_loop, run: what a step gets
  }
end

return function()
  return {
    fn = "fit", -- state: the loop's word
    loop = new_loop(), -- state: as above
    stopping = nil, -- state, object: when it ends
  }
end
]]

  local function said_of_loop(text)
    local _, out = said_of { ["trainer/state"] = STATE, ["trainer/fit_loop"] = text }
    return out
  end

  it("finds nothing wrong in this tree", function()
    assert.same({}, faults_of "lint_state")
  end)

  it("lets a file read what is declared, and set what is its own", function()
    local out = said_of_loop("state.loop.batch = state.fn\nlocal l = state.loop\nl.batch = 1\n"
      .. "state.stopping:ends_fit()")
    assert.matches(" 0 faults", out, 1, true)
  end)

  it("refuses a field that is not declared, whatever the record is called", function()
    local out = said_of_loop("print(state.loop.bach, state.fn)\nlocal l = state.loop\n"
      .. "l.batch = l.btach\nself.running.loop.batch = self.running.fm")
    assert.matches("fit_loop.lua:1: loop.bach: not declared in stdlib/trainer/state.lua", out, 1,
      true)
    assert.matches("fit_loop.lua:3: loop.btach: not declared", out, 1, true)
    assert.matches("fit_loop.lua:4: run.fm: not declared", out, 1, true)
  end)

  it("refuses a file that sets what is another's, alone or in a list", function()
    local out = said_of_loop("state.fn = 1\nstate.loop.batch, state.fn = 1, 2\n"
      .. "print(state.stopping)")
    assert.matches("fit_loop.lua:1: run.fn: set by another file than those beside it", out, 1, true)
    assert.matches("fit_loop.lua:2: run.fn: set by another file", out, 1, true)
    assert.matches(" 2 faults", out, 1, true)
  end)

  it("refuses fields of an object, and lets its methods be called", function()
    local out = said_of_loop("state.loop.batch = state.fn\nstate.stopping:ends_fit()\n"
      .. "state.stopping._warned = true\nlocal stopping = state.stopping\n"
      .. "print(stopping._warned)\nself.running.stopping._trainer = nil\nstopping:ends_fit()")
    assert.matches("fit_loop.lua:3: _warned: a field of an object: call its methods", out, 1, true)
    assert.matches("fit_loop.lua:5: _warned: a field of an object", out, 1, true)
    assert.matches("fit_loop.lua:6: _trainer: a field of an object", out, 1, true)
    assert.matches(" 3 faults", out, 1, true)
  end)

  it("refuses a field that nothing uses", function()
    local out = said_of_loop "print(state.fn)"
    assert.matches("state.lua: loop.batch: nothing uses it", out, 1, true)
  end)
end)

describe("the lint of doors", function()
  it("finds nothing wrong in this tree", function()
    assert.same({}, faults_of "lint_doors")
  end)

  it("refuses texts that reach the terminal past what escapes them", function()
    local _, out = said_of { ["core/a"] = 'c.runtime.write_stderr(name) -- write_stderr(x)',
      ["cli/b"] = "host.paint(name)" }
    assert.matches("core/a.lua:1: write_stderr: console.say and host.write print texts", out, 1,
      true)
    assert.matches("cli/b.lua:1: host.paint: colours are for", out, 1, true)
    assert.matches(" 2 faults", out, 1, true)
  end)
end)
