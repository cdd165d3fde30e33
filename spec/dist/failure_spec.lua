-- spec/dist/failure_spec.lua: however a rank fails, all end soon, and one message says why.
--
-- Each case waits for the event and fails at ten times the bound; ./dev bench failure measures.
local failures = require "spec.dist.failures"
local job = require "spec.dist.job"

-- Runs a row, or marks the case pending with the reason.
local function run(row, over, look)
  local can, why = job.can(over)
  if not can then
    pending(why)
    return
  end
  local result, reason = failures.run(row, over, look)
  assert(result, reason)
  assert.truthy(result.seconds, ("%s over %s: processes are left after %d s; stderr: %s"):format(
    row.name, over, 10 * result.bound, result.err))
  if row.text then assert.equal(1, result.told, result.err) end
  if row.status and over == "shm" then assert.equal(row.status, result.status, result.err) end
  return result
end

describe("an error on one rank", function()
  for _, row in ipairs(failures.wake) do
    it(("over shm: %s"):format(row.name), function() run(row, "shm") end)
  end
  for k = 1, #failures.wake, 2 do
    local row = failures.wake[k]
    it(("over mpi: %s"):format(row.name), function()
      local result = run(row, "mpi")
      assert.is_true(not result or result.status ~= 0)
    end)
  end

  it("leaves the checkpoint that rank 0 writes whole", function()
    run(failures.saving, "shm", function(one)
      local lt = require "ltrain"
      local saved = assert(lt.load(one.folder .. "/a.ckpt"))
      assert.truthy(saved)
    end)
  end)

  it("does not end the prompt", function()
    local child = require "spec.cli.child"
    local status, out = child.run({ "-i" }, { stdin = table.concat({
      "lt.dist.launch(2, function(r) if r == 1 then error 'boom' end lt.dist.barrier() end)",
      "print('still ' .. 'here')", "" }, "\n") })
    assert.equal(0, status)
    assert.matches("still here", out)
  end)
end)

describe("a rank that is killed", function()
  for _, row in ipairs(failures.kills) do
    for _, over in ipairs { "shm", "mpi" } do
      if row.over == nil or row.over == over then
        for round = 1, 2 do
          it(("over %s: %s, round %d"):format(over, row.name, round), function()
            local result = run(row, over)
            if result and not row.text then assert.not_equal(0, #result.files, result.err) end
          end)
        end
      end
    end
  end

  it("by the end of its terminal ends the job", function()
    run(failures.hangup, "shm")
  end)
end)

describe("a rank that is stopped", function()
  it("is lost after the timeout", function()
    local result = run(failures.stop, "shm")
    assert.is_true(result.seconds > failures.timeout - 1)
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
