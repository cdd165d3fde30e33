-- spec/cli/signals_spec.lua: Ctrl-C and SIGTERM. Scripts send the signals to themselves.
local child = require "spec.cli.child"

local HERE <const> = io.popen("pwd"):read("l")
local LINE <const> = HERE .. "/spec/cli/scripts/line.lua"
local SAVED <const> = "lightning_logs/version_0/checkpoints/interrupted.ckpt"

describe("a signal", function()
  local folder

  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  local function run(what, ...)
    return child.run({ "run", LINE, ... }, { dir = folder, env = { WHAT = what } })
  end

  it("ends the step, saves, says where, and the status is 130; the file goes on", function()
    local status, _, err = run("kill INT")
    assert.equal(130, status)
    assert.matches("ltrain: interrupted: saved .*" .. SAVED:gsub("%p", "%%%0"), err)
    assert.not_matches("stack traceback", err, 1, true)
    assert.truthy(io.open(folder .. "/" .. SAVED))
    status, _, err = run("", "--ckpt_path", "last")
    assert.equal(0, status, err)
    assert.truthy(io.open(folder .. "/lightning_logs/version_1/checkpoints/epoch=1-step=8.ckpt"))
  end)

  it("reaches a loop that runs in a coroutine", function()
    local status, _, err = run("kill INT in a coroutine")
    assert.equal(130, status)
    assert.matches("interrupted: saved", err, 1, true)
  end)

  it("reaches a script that computes in a coroutine", function()
    child.write(folder .. "/busy.lua", [=[
      coroutine.wrap(function()
        local lt = require "ltrain"
        local x = lt.zeros(1)
        io.popen("kill -INT " .. lt.runtime.pid()):close()
        while true do x = x + 1 end
      end)()
    ]=])
    local status, _, err = child.run({ "busy.lua" }, { dir = folder })
    assert.equal(130, status)
    assert.matches("busy%.lua:[45]: interrupted\n$", err)
  end)

  it("asks politely as SIGTERM too: 143", function()
    local status, _, err = run("kill TERM")
    assert.equal(143, status)
    assert.matches("interrupted: saved", err, 1, true)
  end)

  it("ends the process at once when it comes twice", function()
    local status, _, err = run("kill INT INT")
    assert.equal(130, status)
    assert.not_matches("saved", err, 1, true)
    assert.is_nil(io.open(folder .. "/" .. SAVED))
  end)

  it("raises an error in a script that runs no loop", function()
    child.write(folder .. "/busy.lua", [[
      local closed <close> = setmetatable({}, {__close = function() print("closed") end})
      io.popen("kill -INT " .. require "ltrain".runtime.pid()):close()
      while true do end
    ]])
    for _, words in ipairs { { "run", "busy.lua" }, { "busy.lua" } } do
      local status, out, err = child.run(words, { dir = folder })
      assert.equal(130, status)
      assert.equal("closed\n", out)
      assert.matches("^ltrain: busy%.lua:[23]: interrupted\n$", err)
    end
  end)

  it("is left alone when the process was started with it ignored", function()
    child.write(folder .. "/ignored.lua", [[
      io.popen("kill -INT " .. require "ltrain".runtime.pid()):close()
      print("goes on")
    ]])
    local pipe <close> = assert(io.popen(("env --ignore-signal=INT %s %s/ignored.lua"):format(
      os.getenv("LTRAIN") or arg[-1], folder)))
    assert.equal("goes on\n", pipe:read("a"))
  end)
end)
