-- spec/bind/process_spec.lua: programs that the library starts: captured, supervised, looked for.
-- tags: slow
local c = require "ltrain.c"
local child = require "spec.cli.child"

local process = c.runtime.process

local function sh(text) return { "sh", "-c", text } end

-- Seconds to sleep that no other process on this machine sleeps.
local function long(seconds) return ("%d.%d"):format(seconds, c.runtime.pid()) end

-- Waits until no process sleeps for so long: who was killed may take a moment to end.
local function is_over(seconds)
  local last = c.runtime.clock() + 20
  repeat
    local pipe <close> = assert(io.popen(("ps -eo stat,args | grep '[s]leep %s' | grep -v '^Z'")
      :format(seconds)))
    if pipe:read("a") == "" then return true end
  until c.runtime.clock() > last
  return false
end

describe("a captured program", function()
  it("gives its status and what it wrote on both streams", function()
    local status, text = process.capture(sh "echo out; echo err >&2; exit 3", 10)
    assert.equal(3, status)
    assert.equal("out\nerr\n", text)
  end)

  it("sees more of an environment", function()
    local _, text = process.capture(sh "echo $LT_MORE $HOME", 10, { "LT_MORE=5" })
    assert.equal("5 " .. os.getenv("HOME") .. "\n", text)
  end)

  it("ends at its time, with what it started", function()
    local seconds = long(71)
    local status, message, text = process.capture(sh(("echo begun; sleep %s & sleep %s"):format(
      seconds, seconds)), 1)
    assert.is_nil(status)
    assert.equal("sh: took longer than 1.0 s", message)
    assert.equal("begun\n", text)
    assert.is_true(is_over(seconds))
  end)

  it("ends with a process that is killed, with its children, though it ignores SIGTERM", function()
    local seconds = long(73)
    child.with_files({ ["script.lua"] = ([[
      require "ltrain.c".runtime.process.capture({ "sh", "-c", "trap '' TERM; kill -KILL $PPID; "
        .. "sleep %s; echo" }, 60)]]):format(seconds) }, function(folder)
      assert.equal(128 + 9, (child.run({ folder .. "/script.lua" })))
    end)
    assert.is_true(is_over(seconds))
  end)

  it("that is not there is reported", function()
    local status, message = process.capture({ "no-such-program" }, 10)
    assert.is_nil(status)
    assert.equal("no-such-program: not found", message)
  end)

  it("may say more than is kept", function()
    local status, text = process.capture(sh "head -c 3000000 /dev/zero", 10)
    assert.equal(0, status)
    assert(#text >= 1 << 20 and #text < 3000000)
  end)

  it("is ended by a signal that its status names", function()
    assert.equal(128 + 9, (process.capture(sh "kill -KILL $$", 10)))
  end)
end)

describe("a supervised program", function()
  it("gets the signals of its supervisor", function()
    local status = process.supervise(sh [[
      trap 'kill $!; exit 9' USR1
      sleep 10 & kill -USR1 $PPID
      wait]])
    assert.equal(9, status)
  end)

  it("takes with it what it started", function()
    local seconds = long(72)
    assert.equal(1, process.supervise(sh(("sleep %s & exit 1"):format(seconds))))
    assert.is_true(is_over(seconds))
  end)
end)

describe("hosts that are probed", function()
  it("answer, are this machine, or have a reason each", function()
    local answers = process.probe({ { "localhost", 22 }, { "no-such-host.invalid", 22 } }, 2)
    assert.equal("=", answers[1])
    assert.matches("^no such host %(", answers[2])
  end)
end)
