-- spec/dist/kill_spec.lua: a rank that is killed ends the job, and somebody says so.
--
-- Each case waits for the event and fails at ten times the bound; ./dev bench failure measures.
-- tags: half, sampled, slow, waits
local expect = require "spec.dist.expect"
local failures = require "spec.dist.failures"
local job = require "spec.dist.job"
local over = require "spec.dist.over"

describe("a rank that is killed", function()
  for _, row in ipairs(failures.kills) do
    for round = 1, 2 do
      local ways = row.over and { row.over } or { "shm", "mpi", "ucx" }
      over(ways, ("ends the job: %s, round %d,"):format(
        row.name, round), function(way)
        local result = expect(row, way)
        if not row.text then assert.not_equal(0, #result.files, result.err) end
      end)
    end
  end

  -- Files below /dev/shm, which mpirun removes, but for its own sudden end.
  over({ "mpi" }, "with its launcher leaves no shared memory behind", function(way)
    local one <close> = job.start([[
      local names, own = {}, assert(io.open(("shared.%d"):format(lt.dist.rank()), "w"))
      for line in io.lines "/proc/self/maps" do
        names[line:match "(/dev/shm/vader_segment%S+)" or "/"] = true
      end
      for name in pairs(names) do own:write(name, "\n") end
      own:close()
      lt.dist.barrier()
      mark "ready"
      while true do lt.dist.all_reduce(1) end
    ]], { over = way })
    assert.truthy(one:wait_for("ready", 30))
    job.signal("KILL", one:find("^mpirun ")[1])
    assert.truthy(one:wait_gone(30))
    for _, name in ipairs { "shared.0", "shared.1" } do
      for path in one:read(name):gmatch "[^\n]+" do
        assert(path == "/" or not require("ltrain.c").io.kind(path), path)
      end
    end
  end)

  it("by the end of its terminal ends the job", function()
    expect(failures.hangup, "shm")
  end)
end)
