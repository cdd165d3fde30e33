-- spec/dist/wake_spec.lua: an error on one rank ends all others, whatever they do.
--
-- Each case waits for the event and fails at ten times the bound; ./dev bench failure measures.
local expect = require "spec.dist.expect"
local failures = require "spec.dist.failures"

describe("an error on one rank", function()
  for _, row in ipairs(failures.wake) do
    it(("over shm: %s"):format(row.name), function() expect(row, "shm") end)
  end
  for k = 1, #failures.wake, 2 do
    local row = failures.wake[k]
    it(("over mpi: %s"):format(row.name), function()
      local result = expect(row, "mpi")
      assert.is_true(not result or result.status ~= 0)
    end)
  end

  it("leaves the checkpoint that rank 0 writes whole", function()
    expect(failures.saving, "shm", function(one)
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
