-- spec/cli/lua_errors_spec.lua: an error is, to the script, what Lua makes of it: the program's own
-- message handler changes nothing that a script can see.
local child = require "spec.cli.child"

describe("what a script sees of an error", function()
  local folder
  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  -- Runs the script both ways; what it printed must be `wanted`, then `failure` is reported.
  local function check(code, wanted, failure)
    child.write(folder .. "/s.lua", code)
    for _, words in ipairs { { "s.lua" }, { "run", "s.lua" } } do
      local status, out, err = child.run(words, { dir = folder })
      assert.equal(wanted, out)
        assert.equal(failure or "", err:gsub("\nstack traceback:.*", "\n"))
      assert.equal(failure and 1 or 0, status)
    end
  end

  it("is what the reader of load raised", function()
    check([[
print(load(function() error("no text") end))
print(select(2, load(function() error({7}) end))[1])
print(load(function() error(nil) end))
print(pcall(load, function() error("no text", 0) end))
]], "nil\ts.lua:1: no text\n7\nnil\tnil\ntrue\tnil\tno text\n")
  end)

  it("is a text where syntax nests too deep", function()
    check([[
local deep = "return " .. ("("):rep(300) .. (")"):rep(300)
print(load(deep))
local file = io.open("deep.lua", "w")
file:write(deep):close()
print(loadfile("deep.lua"))
print(pcall(dofile, "deep.lua"))
]], ("nil\tC stack overflow\n"):rep(2) .. "false\tC stack overflow\n")
  end)

  it("is the same value in what it closes, and then it is reported", function()
    check([[
local _ <close> = setmetatable({}, {__close = function(_, e) print(e) end})
error("broken")
]], "s.lua:2: broken\n", "ltrain: s.lua:2: broken\n")
    check([[
local _ <close> = setmetatable({}, {__close = function(_, e) print(e.code) end})
error({code = 42})
]], "42\n", "ltrain: s.lua:2: (error object is a table value: {code = 42})\n")
    check([[
local _ <close> = setmetatable({}, {__close = function(_, e) error("then " .. e, 0) end})
error("first", 0)
]], "", "ltrain: then first\n")
  end)

  it("is its own in handlers, coroutines and after a rethrow", function()
    check([[
local thrown = {}
print(select(2, xpcall(error, function(e) return e == thrown end, thrown)))
print(select(2, coroutine.resume(coroutine.create(error), thrown)) == thrown)
print(select(2, pcall(coroutine.wrap(error), thrown)) == thrown)
print(select(2, pcall(function() error((select(2, pcall(error, thrown)))) end)) == thrown)
print(type(select(2, xpcall(error, function(e) error(e, 0) end, "again"))))
local co = coroutine.create(function()
  local _ <close> = setmetatable({}, {__close = function(_, e) print(e) end})
  error("inside", 0)
end)
print(coroutine.resume(co))
print(coroutine.close(co))
]], "true\ntrue\ntrue\ntrue\nstring\nfalse\tinside\ninside\nfalse\tinside\n")
  end)

  it("is a text in the warning about a finaliser", function()
    child.write(folder .. "/s.lua", [[
setmetatable({}, {__gc = function() error("late") end})
collectgarbage()
]])
    local status, _, err = child.run({ "s.lua" }, { dir = folder })
    assert.equal(0, status)
    assert.equal("ltrain: warning: error in __gc (s.lua:1: late)\n", err)
  end)

  it("is told without a word of the library, wherever it comes from", function()
    local function told(text)
      child.write(folder .. "/s.lua", text)
      local status, _, err = child.run({ "s.lua" }, { dir = folder })
      assert.equal(1, status)
      return err
    end
    assert.equal("ltrain: s.lua:2: add: shapes do not broadcast: [2] and [3] (passed on at "
      .. "s.lua:4)\n", told [[
local f = coroutine.wrap(function(x)
  local y = x + require "ltrain".ones(3)
end)
f(require "ltrain".ones(2))
]])
    assert.equal("ltrain: 3\n",
      told "error(setmetatable({}, {__tostring = function() return 3 end}))")
    local err = told "local s = require 's'"
    assert.matches("C stack overflow: does it require itself?\n", err, 1, true)
    assert.not_matches("[C]", err, 1, true)
    child.write(folder .. "/python.lua", "x = 1\nx += 1\n")
    assert.matches("./python.lua:2: syntax error near '+'; there is no +=: write x = x + ...\n",
      told "require 'python'", 1, true)
  end)

  it("has the line of a return that is not a frame any more", function()
    child.write(folder .. "/s.lua", [[
local lt = require "ltrain"
local function loader(data)
  return lt.data.DataLoader(data, {batch_sise = 2})
end
local train = loader(lt.data.TensorDataset(lt.ones(2)))
]])
    local _, _, err = child.run({ "s.lua" }, { dir = folder })
    assert.equal("ltrain: s.lua:3: DataLoader: unknown option 'batch_sise'; did you mean "
      .. "'batch_size'? (called at s.lua:5)\n", err)
  end)

  it("is the error itself in on_exception", function()
    check([[
local lt = require "ltrain"
lt.seed(1)
local Net = lt.Module:extend "Net"
function Net:init() self.layer = lt.nn.Linear(1, 1) end
function Net:training_step() error("in step", 0) end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local watch = {on_exception = function(_, _, _, e) print(type(e), e) end}
lt.Trainer{max_epochs = 1, logger = false, enable_progress_bar = false, callbacks = {watch},
  enable_model_summary = false, enable_checkpointing = false}:fit(Net(), {lt.ones(1, 1)})
]], "string\tin step\n", "ltrain: in step\n")
  end)

  it("is the library's where the script has none of Lua's names any more", function()
    check([[
local lt, globals = require "ltrain", _G
local libraries, names = {string, table, math, coroutine, utf8, os, io, debug, package}, {}
local print = print
for _, library in ipairs(libraries) do
  for name in pairs(library) do names[#names + 1] = {library, name} end
end
for k = 1, #names do
  local library, name = names[k][1], names[k][2]
  library[name] = nil
end
for name in next, globals do globals[name] = nil end
print(lt.ones(2))
lt.Trainer{max_epoch = 1}
]], "tensor([1., 1.])\n",
      "ltrain: s.lua:13: Trainer: unknown option 'max_epoch'; did you mean 'max_epochs'?\n")
  end)

  it("that load caught ends no ranks", function()
    child.write(folder .. "/s.lua", [[
local lt = require "ltrain"
print(lt.dist.launch(2, function()
  local text, message = load(function() error("unread", 0) end)
  assert(not text and message == "unread")
  return lt.dist.world_size()
end))
]])
    local status, out, err = child.run({ "s.lua" }, { dir = folder })
    assert.equal("2\n", out, err)
    assert.equal(0, status)
  end)
end)
