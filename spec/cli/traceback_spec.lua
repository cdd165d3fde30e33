-- spec/cli/traceback_spec.lua: which frames are shown of an error, and under which names.
-- tags: slow
local child = require "spec.cli.child"

describe("the traceback of an error", function()
  local folder
  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  local function shown(script, word)
    child.write(folder .. "/s.lua", script)
    local status, _, err = child.run(word and { word, "s.lua" } or { "s.lua" }, { dir = folder })
    assert.equal(1, status)
    return err:match "ltrain: (s%.lua.*)$" or err
  end

  it("has all frames of the script, however many of the library are between", function()
    assert.equal([[
s.lua:11: view: shape [3, 5] does not hold the 16 elements of [4, 4] (in Outer.inner[2][2].fc)
stack traceback:
	s.lua:11: in function 'Outer:init'
	s.lua:5: in method 'forward'
	s.lua:15: in method 'forward'
	s.lua:16: in function 'Outer:training_step'
]], shown([[
local lt = require "ltrain"
local nn = lt.nn
local Inner = lt.Module:extend("Inner")
function Inner:init() self.fc = nn.Linear(4, 4) end
function Inner:forward(x) local y = self.fc(x) return y end
local Outer = lt.Module:extend("Outer")
function Outer:init()
  self.inner = nn.Sequential(Inner(), nn.Sequential(Inner(), Inner()))
  local last = self.inner[2][2].fc
  last:register_forward_hook(function(_, _, out)
    local bad = out:view(3, 5)
    return bad
  end)
end
function Outer:forward(x) local y = self.inner(x) return y end
function Outer:training_step(batch) local loss = self(batch):sum() return loss end
function Outer:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local data = lt.data.DataLoader(lt.randn(8, 4):unbind(), {batch_size = 4})
return {model = Outer(), data = data, trainer = {logger = false, enable_checkpointing = false,
  enable_model_summary = false, max_epochs = 1}}
]], "run"))
  end)

  it("begins in the coroutines that coroutine.wrap has ended", function()
    local script <const> = [[
local inner = coroutine.wrap(function()
  local function a() error "boom" end
  a()
end)
local outer = coroutine.wrap(function() local r = inner() return r end)
local function go() local v = outer() return v end
go()
]]
    assert.equal([[
s.lua:2: boom (passed on at s.lua:5) (passed on at s.lua:6)
stack traceback:
	s.lua:2: in local 'a'
	s.lua:3: in function <s.lua:1>
	s.lua:5: in function <s.lua:5>
	s.lua:6: in local 'go'
	s.lua:7: in main chunk
]], shown(script))
    local _, out = child.run({ "-i" }, { dir = folder, stdin = "dofile 's.lua'\n:bt\n" })
    assert.matches("\n\ts%.lua:2: in local 'a'\n\ts%.lua:3: in function <s%.lua:1>\n.*"
      .. "\n\ts%.lua:5: .*\n\ts%.lua:6: in local 'go'\n", out)
  end)

  it("leaves out the middle of a recursion, and says how much", function()
    local text = shown("local function f(n)\n  if n == 0 then error 'end' end f(n - 1) return n\n"
      .. "end\nf(99)\n")
    assert.matches("\n\t...\t(skipping 80 frames)\n", text, 1, true)
    assert.matches("\n\ts.lua:4: in main chunk\n$", text)
    text = shown "local function f() return 1 + f() end\nf()\n"
    assert.matches("\n\t%.%.%.\t%(skipping %d%d%d%d+ levels%)\n", text)
    assert.matches("\n\ts.lua:2: in main chunk\n$", text)
  end)
end)
