-- spec/dist/wake_spec.lua: an error on one rank ends all others, whatever they do.
--
-- Each case waits for the event and fails at ten times the bound; ./dev bench failure measures.
-- tags: half, sampled, slow, waits
local expect = require "spec.dist.expect"
local failures = require "spec.dist.failures"
local over = require "spec.dist.over"

describe("an error on one rank", function()
  for k, row in ipairs(failures.wake) do
    over(k % 2 == 1 and { "shm", "mpi" } or { "shm" }, row.name, function(way)
      assert.not_equal(0, expect(row, way).status)
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
