-- spec/xla/faults_spec.lua: plugins that are wrong, and devices that fail, by a plugin made for it
-- (fake_plugin.c).
-- tags: slow, waits
local child = require "spec.cli.child"
local terminal = require "spec.cli.terminal"

local PLUGIN <const> = (os.getenv "LT_BUILD" or "build") .. "/spec/c/fake_pjrt.so"
local USE <const> = [[
local lt = require "ltrain"
local x = lt.ones(2, 3):to "xla"
local y = x:matmul(lt.ones(3, 4):to "xla")
local z = y:tanh() -- line 4
print(z:sum():item())
]]

describe("a PJRT plugin", function()
  local folder

  before_each(function()
    folder = child.folder()
    child.write(folder .. "/script.lua", USE)
  end)
  after_each(function() child.remove(folder) end)

  -- Runs script.lua with the plugin in this state; `more`: settings.
  local function run(words, more, arguments)
    local env = { LTRAIN_PJRT_PLUGIN = PLUGIN, LTRAIN_FAKE_PJRT = words, LTRAIN_XLA_CACHE = "" }
    for key, value in pairs(more or {}) do env[key] = value end
    return child.run(arguments or { "run", "script.lua" }, { dir = folder, env = env })
  end

  local function fails(words, text, more)
    local status, out, err = run(words, more)
    assert.equal(1, status, out .. err)
    assert.matches(text, err, 1, true)
    return err
  end

  it("that prints when it starts works", function()
    local status, out, err = run "prints"
    assert.equal(0, status, err)
    assert.equal("the plugin starts\n0.0\n", out)
  end)

  it("that is wrong is refused in a sentence at the script's line", function()
    local here = "script.lua:2: transfer: xla: " .. PLUGIN .. ": "
    fails("nothing", here .. "its GetPjrtApi returned nothing\n")
    fails("old", here .. "too old: a table of ")
    fails("lacking", here .. "it lacks PJRT_Client_Compile\n")
    fails("no_device", here .. "the plugin finds no device\n")
    fails("no_client", "script.lua:2: transfer: xla: no client of the plugin: no chip answers on "
      .. "this host\n")
  end)

  it("that is damaged, missing or not a plugin is refused", function()
    child.write(folder .. "/damaged.so", "\127ELF and no more")
    local damaged = folder .. "/damaged.so"
    fails("", "xla: " .. damaged .. ": file too short\n", { LTRAIN_PJRT_PLUGIN = damaged })
    fails("", "xla: no PJRT plugin /nowhere.so (LTRAIN_PJRT_PLUGIN)",
      { LTRAIN_PJRT_PLUGIN = "/nowhere.so" })
    local other = (os.getenv "LT_BUILD" or "build") .. "/backends/ltrain_xla.so"
    fails("", "xla: " .. other .. ": not a PJRT plugin: it has no GetPjrtApi",
      { LTRAIN_PJRT_PLUGIN = other })
  end)

  it("cannot have the name of other devices", function()
    fails("", "xla: there is a device 'cpu' already", { LTRAIN_PJRT_PLUGIN = "cpu=" .. PLUGIN })
  end)

  it("gives its devices the name before its file", function()
    child.write(folder .. "/script.lua", [[
      local lt = require "ltrain"
      print(lt.ones(2):to "hpu".device, lt.ones(2):to "xla:0".device, lt.xla.report().device)
      local net = lt.nn.Linear(2, 1)
      function net:training_step(x) return self(x):sum() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
      local trainer = lt.Trainer { max_epochs = 1, accelerator = "hpu", barebones = true }
      trainer:fit(net, { lt.ones(4, 2) })
      print(net.weight.device)
    ]])
    local status, out, err = run("", { LTRAIN_PJRT_PLUGIN = "hpu=" .. PLUGIN })
    assert.equal(0, status, err)
    assert.equal("hpu:0\thpu:0\thpu\nhpu:0\n", out)
  end)

  it("may be in a folder with a = in its name", function()
    os.execute(("mkdir '%s/a=b' && cp '%s' '%s/a=b/plugin.so'"):format(folder, PLUGIN, folder))
    assert.equal(0, (run("", { LTRAIN_PJRT_PLUGIN = folder .. "/a=b/plugin.so" })))
  end)

  it("that does not compile a program: the error names the operation and its line", function()
    local err = fails("refuses", "xla: tanh at script.lua:4 does not compile: mlir_module:")
    assert.matches("^ltrain: script.lua:5: ", err)
    fails("refuses unclear", "xla: a program of 3 operations that begins at script.lua:3 does not "
      .. "compile: there is no tanh here")
  end)

  it("out of memory: the error names the program's line and the largest tensors", function()
    child.write(folder .. "/script.lua", [[
      local lt = require "ltrain"
      local weight = lt.zeros(1000, 1000):to "xla"
      print((weight + 1):sum():item())
    ]])
    local err = fails("exhausted", "xla: a program of 2 operations that begins at script.lua:3 "
      .. "does not run: cannot allocate 123 bytes")
    assert.matches("the largest tensors in use:\n +3%.8 MiB  1 of [%w_]+ %[1000, 1000%] f32 at "
      .. "script.lua:3\n", err)
    assert.matches("3%.8 MiB .*at script.lua:2\n", err)
  end)

  it("that knows its memory has it in the report", function()
    child.write(folder .. "/script.lua", USE .. "print(lt.xla.mem_get_info())\n"
      .. "print(lt.xla.report())\n")
    local _, out = run "memory"
    assert.matches("\n5000000\t8000000\n", out, 1, true)
    assert.matches("\nmemory of the device: 3.0 MB in use, at most 5.0 MB, of 8.0 MB\n", out, 1,
      true)
    assert.matches("\n0\t0\n", select(2, run ""), 1, true)
  end)

  it("with two devices has the memory of both in the report that xla_debug prints", function()
    child.write(folder .. "/script.lua", [[
      local lt = require "ltrain"
      local net = lt.nn.Linear(2, 1)
      function net:training_step(x) return self(x):sum() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
      lt.Trainer { strategy = "xla_debug", devices = 2, max_epochs = 1, barebones = true }
        :fit(net, { lt.ones(4, 2) })
      print(lt.xla.mem_get_info())
    ]])
    local status, out, err = run "memory two"
    assert.equal(0, status, err)
    assert.equal("4000000\t7000000\n", out)
    assert.matches("\nmemory of device 0: 3.0 MB in use, at most 5.0 MB, of 8.0 MB\n"
      .. "memory of device 1: 3.0 MB in use, at most 5.0 MB, of 7.0 MB\n", err, 1, true)
  end)

  it("of another version takes no executables of this one", function()
    child.write(folder .. "/script.lua", USE .. "print(lt.xla.report().loaded)\n")
    local cache = { LTRAIN_XLA_CACHE = folder .. "/cache" }
    for words, loaded in pairs { [""] = 1, other = 0 } do
      run("", cache)
      local _, out = run(words, cache)
      assert.equal("0.0\n" .. loaded .. "\n", out)
    end
  end)

  it("interrupted while it compiles ends the script cleanly", function()
    child.write(folder .. "/script.lua", [[
      local lt, c = require "ltrain", require "ltrain.c"
      io.popen("(sleep 0.7; kill -INT " .. c.runtime.pid() .. ") >/dev/null 2>&1 &"):close()
      local x = lt.ones(2):to "xla" + 1
      print(x:sum():item()) -- line 4
      for _ = 1, 1e9 do end
    ]])
    local status, _, err = run "slow"
    assert.equal(130, status, err)
    assert.matches("script.lua:[45]: interrupted\n$", err)
  end)

  it("that compiles for long: a terminal says what, other outputs do not", function()
    local screens, status = terminal.run("see 0.0\nend\nscreen all", { args = "run script.lua",
      dir = folder, env = { LTRAIN_PJRT_PLUGIN = PLUGIN, LTRAIN_FAKE_PJRT = "slow",
                            LTRAIN_XLA_CACHE = "" } })
    if not screens then return pending "no pseudo-terminals here" end
    assert.equal(0, status)
    assert.matches("^compiling the step: 3 operations\n0%.0%s*$", screens.all)
    local _, out, err = run "slow"
    assert.equal("0.0\n", out .. err)
  end)

  it("that was used before a fork cannot be used after it", function()
    child.write(folder .. "/script.lua", [[
      local lt = require "ltrain"
      lt.ones(2):to "xla"
      lt.dist.launch(2, function() return lt.ones(2):to "xla":sum():item() end)
    ]])
    fails("", "script.lua:3: transfer: xla cannot be used here: the process that this one was "
      .. "forked from had used it")
  end)

  it("is in `ltrain doctor`", function()
    local _, out = run("", nil, { "doctor" })
    assert.matches("\nxla +yes: fake 1, 1 device; a program compiled in %d+%.%d s\n", out)
    _, out = run("no_client", nil, { "doctor" })
    assert.matches("\nxla +no: .*no chip answers on this host\n", out)
  end)
end)
