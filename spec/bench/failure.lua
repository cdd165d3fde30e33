-- spec/bench/failure.lua: how long a job of several ranks takes to end, for each way of failing.
--
--   ./dev bench failure [ROUNDS]
--
-- From the event (an error, a kill, a stop) to the end of the last process; the bound that the
-- specs hold ten times of; how often standard error says why. Over mpi mpirun's own way home is in
-- it (it kills what is left 2 s after its first rank has ended).
local failures = require "spec.dist.failures"
local job = require "spec.dist.job"

local ROUNDS <const> = tonumber(arg and arg[1]) or 3

local function measure(row, over)
  local seconds, reported, bound = {}, {}, 0
  for _ = 1, ROUNDS do
    local result, why = failures.run(row, over)
    if not result then return print(("%-60s %s  %s"):format(row.name, over, why)) end
    bound = result.bound
    seconds[#seconds + 1] = result.seconds or math.huge
    reported[#reported + 1] = tostring(result.reported or #result.files .. " files")
  end
  table.sort(seconds)
  print(("%-60s %s  median %6.2f s  most %6.2f s  bound %2d s  reported %s"):format(row.name, over,
    seconds[#seconds // 2 + 1], seconds[#seconds], bound, table.concat(reported, ", ")))
end

local function measure_both(row)
  for _, over in ipairs { "shm", "mpi" } do
    if (row.over == nil or row.over == over) and job.can(over) then measure(row, over) end
  end
end

for _, row in ipairs(failures.wake) do measure_both(row) end
measure(failures.saving, "shm")
for _, row in ipairs(failures.kills) do measure_both(row) end
for _, row in ipairs(failures.interrupts) do measure_both(row) end
measure_both(failures.interrupted_fits[1])
measure(failures.hangup, "shm")
measure_both(failures.stop)
measure_both(failures.stop_first)
