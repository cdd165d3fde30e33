-- spec/dist/interrupt_spec.lua: a signal to one rank, or to all, ends a script on all ranks.
--
-- Each case waits for the event and fails at ten times the bound; ./dev bench failure measures.
-- tags: half, sampled, slow, waits
local expect = require "spec.dist.expect"
local failures = require "spec.dist.failures"
local over = require "spec.dist.over"

describe("a signal", function()
  for _, row in ipairs(failures.interrupts) do
    over({ "shm", "mpi" }, "ends all ranks with one message: " .. row.name, function(way)
      local result = expect(row, way)
      assert.not_matches("disagree", result.err, 1, true)
      -- mpirun that gets a signal has a status of its own.
      if not row.name:find "SIGINT" then assert.equal(row.status, result.status, result.err) end
    end)
  end

  for _, row in ipairs(failures.interrupted_fits) do
    over({ "shm", "mpi" }, "ends a fit with one checkpoint and one message: " .. row.name,
      function(way)
        local saved
        local result = expect(row, way, function(one)
          saved = one:files "interrupted%.ckpt$"
        end)
        assert.equal(row.status, result.status, result.err)
        assert.equal(1, #saved, result.err)
      end)
  end
end)
