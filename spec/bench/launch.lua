-- spec/bench/launch.lua: from the launch of two ranks to their first all_reduce.
--
--   ./dev bench launch [ROUNDS]
--
-- Forked: from the call of lt.dist.launch, and from `ltrain` on the command line. Joined: from
-- mpirun on the command line; srun is the same but for its own time. Wanted: 0.05 s, 1 s.
local job = require "spec.dist.job"
local lt = require "ltrain"

local ROUNDS <const> = tonumber(arg and arg[1]) or 20

local function report(name, times)
  table.sort(times)
  print(("%-44s least %7.1f ms, median %7.1f ms"):format(name, times[1] * 1e3,
    times[#times // 2 + 1] * 1e3))
end

local function forked()
  local times = {}
  local x = lt.ones(1)
  for i = 1, ROUNDS do
    local began = job.now()
    lt.dist.launch(2, function(rank)
      lt.dist.all_reduce(x)
      if rank == 0 then times[i] = job.now() - began end
    end)
  end
  report("lt.dist.launch to all_reduce", times)
end

-- The script leaves the time (of the clock that all processes share) of its first all_reduce.
local SCRIPT <const> = [[
lt.dist.launch(2, function(rank)
  lt.dist.all_reduce(lt.ones(1))
  if rank == 0 then
    local f = assert(io.open("at", "w"))
    f:write(("%.6f"):format(require "ltrain.c".runtime.clock()))
    f:close()
  end
end)
]]

local function from_command_line(over)
  local can, why = job.can(over)
  if not can then return print(("over %s: %s"):format(over, why)) end
  local times = {}
  for i = 1, math.max(3, ROUNDS // 4) do
    local one <close> = job.start(SCRIPT, { over = over })
    assert(one:wait_for("status", 30))
    times[i] = assert(tonumber(one:read "at"), one:read "err") - one.started
  end
  report((over == "mpi" and "mpirun -n 2 " or "") .. "ltrain run to all_reduce", times)
end

forked()
from_command_line "shm"
from_command_line "mpi"
