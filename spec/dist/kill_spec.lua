-- spec/dist/kill_spec.lua: a rank that is killed ends the job, and somebody says so.
--
-- Each case waits for the event and fails at ten times the bound; ./dev bench failure measures.
local expect = require "spec.dist.expect"
local failures = require "spec.dist.failures"

describe("a rank that is killed", function()
  for _, row in ipairs(failures.kills) do
    for _, over in ipairs { "shm", "mpi" } do
      if row.over == nil or row.over == over then
        for round = 1, 2 do
          it(("over %s: %s, round %d"):format(over, row.name, round), function()
            local result = expect(row, over)
            if result and not row.text then assert.not_equal(0, #result.files, result.err) end
          end)
        end
      end
    end
  end

  it("by the end of its terminal ends the job", function()
    expect(failures.hangup, "shm")
  end)
end)
