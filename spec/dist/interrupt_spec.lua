-- spec/dist/interrupt_spec.lua: a signal to one rank, or to all, ends a script on all ranks.
--
-- Each case waits for the event and fails at ten times the bound; ./dev bench failure measures.
local expect = require "spec.dist.expect"
local failures = require "spec.dist.failures"

describe("a signal", function()
  for _, row in ipairs(failures.interrupts) do
    for _, over in ipairs { "shm", "mpi" } do
      it(("ends all ranks over %s, with one message: %s"):format(over, row.name), function()
        local result = expect(row, over)
        if not result then return end
        assert.not_matches("disagree", result.err, 1, true)
        -- mpirun that is told to end has a status of its own.
        if not row.name:find "SIGINT" then assert.equal(row.status, result.status, result.err) end
      end)
    end
  end

  for _, over in ipairs { "shm", "mpi" } do
    it("ends a fit over " .. over .. " with one checkpoint and one message", function()
      local saved
      local result = expect(failures.interrupted_fit, over, function(one)
        saved = one:files "interrupted%.ckpt$"
      end)
      if not result then return end
      assert.equal(143, result.status, result.err)
      assert.equal(1, #saved, result.err)
    end)
  end
end)
