-- spec/dist/stop_spec.lua: a rank that is stopped is lost; a machine that slept is not.
--
-- Each case waits for the event and fails at ten times the bound; ./dev bench failure measures.
-- tags: mpi, slow, waits
local expect = require "spec.dist.expect"
local failures = require "spec.dist.failures"
local job = require "spec.dist.job"

describe("a rank that is stopped", function()
  it("is lost after the timeout", function()
    local result = expect(failures.stop, "shm")
    assert.is_true(result.seconds > failures.timeout - 1)
  end)

  -- Stops a rank of a job that has time until it is lost, until the others have named it.
  local function named(over, rank)
    local can, reason = job.can(over)
    if not can then return pending(reason) end
    local one <close> = job.start(failures.suspend.script, { over = over, env = "LT_TIMEOUT=40" })
    assert.is_true(one:wait_for("ready", 20), one:read "err")
    local pid, deadline = one:pid(rank), job.now() + 30
    local message
    job.signal("STOP", pid)
    repeat
      job.sleep(0.02)
      message = one:read "err"
    until message ~= "" or job.now() > deadline
    job.signal("CONT", pid)
    assert(os.execute("touch " .. one.folder .. "/enough"))
    assert.matches(("^ltrain: rank %d %%(pid %d on %%S+%%) is waited for, and has sent no "
      .. "heartbeat for %%d+ s %%(stopped%%?[^)]*%%); an error at 40 s\n$"):format(rank, pid),
      message)
    assert.is_true(one:wait_for("done", 20), one:read "err")
    assert.equal(message, one:read "err")
  end

  it("is named while others wait for it, before it is lost", function()
    named("shm", 1)
    named("ucx", 1)
  end)

  it("is named when it is rank 0", function()
    named("shm", 0)
    named("ucx", 0)
  end)

  it("does not stay behind when it is rank 0, the parent", function()
    expect(failures.stop_first, "shm")
  end)

  it("is not lost when all were stopped together", function()
    local one <close> = failures.start(failures.suspend, "shm")
    assert.is_true(one:wait_for("ready", 20), one:read "err")
    for rank = 0, 1 do job.signal("STOP", one:pid(rank)) end
    job.sleep(2 * failures.timeout)
    for rank = 0, 1 do job.signal("CONT", one:pid(rank)) end
    job.sleep(1)
    assert(os.execute("touch " .. one.folder .. "/enough"))
    assert.is_true(one:wait_for("done", 20), one:read "err")
    assert.equal("", one:read "err")
  end)
end)
