-- spec/cli/long_path_spec.lua: scripts whose paths are so long that Lua's messages leave out the
-- beginning.
local child = require "spec.cli.child"

describe("a script with a long path", function()
  local folder
  local DEEP <const> = "a_folder_with_a_rather_long_name/and_another_one_within_it/model"
  local WRONG <const> = "local function encode(x) return x end\nlocal y = encod(3)\n"

  setup(function()
    folder = child.folder()
    assert(os.execute(("mkdir -p '%s/%s'"):format(folder, DEEP)))
    child.write(("%s/%s/s.lua"):format(folder, DEEP), WRONG)
    child.write(("%s/%s/b.lua"):format(folder, DEEP), [[
local lt = require "ltrain"
lt.breakpoint()
local x = 3
print(x)
]])
    child.write(("%s/%s/part.lua"):format(folder, DEEP), "return function()\n" .. WRONG .. "end\n")
    child.write(folder .. "/main.lua", ("package.path = '%s/%s/?.lua'\n"):format(folder, DEEP)
      .. "require 'part' ()\n")
  end)
  teardown(function() child.remove(folder) end)

  local function run(name, ...)
    return child.run({ ... }, { dir = folder, stdin = name or "" })
  end

  it("has the remedy below its errors", function()
    local _, _, err = run(nil, DEEP .. "/s.lua")
    assert.matches("^ltrain: %.%.%..*'encod'%); did you mean 'encode'%? %(line 1%)\n$", err)
    _, _, err = run(nil, "main.lua")
    assert.matches("'encod'%); did you mean 'encode'%? %(line 2%)\n", err)
  end)

  it("has it where it does not load, if it can be read", function()
    child.write(folder .. "/py.lua", "local x = 1\nx += 2\n")
    local _, _, err = run(nil, "py.lua")
    assert.equal("ltrain: py.lua:2: syntax error near '+'; there is no +=: write x = x + ...\n",
      err)
  end)

  it("has it on several ranks too", function()
    child.write(("%s/%s/r.lua"):format(folder, DEEP), [[
local lt = require "ltrain"
local net = lt.Module:extend("Net")()
net.head = lt.nn.Linear(1, 1)
function net:training_step(x) return self.heads(x):sum() end
function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
return {model = net, data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 1))),
  trainer = {logger = false, enable_checkpointing = false}}
]])
    local _, _, err = run(nil, "run", "--devices", "2", "--accelerator", "cpu", DEEP .. "/r.lua")
    assert.matches("ltrain: rank %d: [^\n]*'heads'%); did you mean 'head'%? %(line 3%)\n", err)
  end)

  it("has its whole path in what a check finds, and each fault once", function()
    local _, out = run(nil, "check", DEEP .. "/s.lua")
    assert.equal(DEEP .. "/s.lua:2: error: nothing is called 'encod' [global]\n"
      .. "  remedy: write encode\n" .. DEEP .. "/s.lua: 1 error, 0 warnings\n", out)
  end)

  it("has what was meant in what a check finds", function()
    child.write(("%s/%s/f.lua"):format(folder, DEEP),
      "local t = {}\nfunction t.head() end\nt.heads()\n")
    local _, out = run(nil, "check", DEEP .. "/f.lua")
    assert.matches("; did you mean 'head'? (line 2) [load]\n", out, 1, true)
  end)

  it("has it at breakpoints too", function()
    local _, out = run(":break 4\n:c\n:c\n", DEEP .. "/b.lua")
    assert.matches("^lt.breakpoint%(%)\n" .. DEEP .. "/b.lua:2: in main chunk\n", out)
    assert.matches("breakpoint 1  " .. DEEP .. "/b.lua:4  |print(x)\n", out, 1, true)
    assert.matches("breakpoint 1\n" .. DEEP .. "/b.lua:4: in main chunk\n", out, 1, true)
  end)
end)
