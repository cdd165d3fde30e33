-- spec/dist/kill_spec.lua: a rank that is killed ends the job, and somebody says so.
--
-- Each case waits for the event and fails at ten times the bound; ./dev bench failure measures.
local expect = require "spec.dist.expect"
local failures = require "spec.dist.failures"
local over = require "spec.dist.over"

describe("a rank that is killed", function()
  for _, row in ipairs(failures.kills) do
    for round = 1, 2 do
      over(row.over and { row.over } or { "shm", "mpi" }, ("ends the job: %s, round %d,"):format(
        row.name, round), function(way)
        local result = expect(row, way)
        if not row.text then assert.not_equal(0, #result.files, result.err) end
      end)
    end
  end

  it("by the end of its terminal ends the job", function()
    expect(failures.hangup, "shm")
  end)
end)
