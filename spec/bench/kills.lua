-- spec/bench/kills.lua: many kills at random moments, over shm and mpi.
--
--   ./dev bench kills [KILLS]
--
-- A job of three ranks reduces for ever; after a random time one of its ranks (or mpirun) is
-- killed. Counted: jobs of which a process was left after 3 s (over mpi 5 s), jobs that reported
-- the failure not once but never or more often.
local failures = require "spec.dist.failures"
local job = require "spec.dist.job"

local KILLS <const> = tonumber(arg and arg[1]) or 100

local totals = {}
for k = 1, KILLS do
  local row = failures.kills[(k - 1) % #failures.kills + 1]
  local over = row.over or (k % 2 == 0 and "mpi" or "shm")
  if job.can(over) then
    local key = ("%s over %s"):format(row.name, over)
    local sum = totals[key] or { jobs = 0, left = 0, unreported = 0, slowest = 0 }
    totals[key] = sum
    row.delay = math.random() * 0.5
    local result, why = failures.run(row, over)
    assert(result, why)
    local seconds = result.seconds or math.huge
    sum.jobs = sum.jobs + 1
    sum.slowest = math.max(sum.slowest, seconds)
    if seconds > result.bound then sum.left = sum.left + 1 end
    local reported = result.reported or (#result.files > 0 and 1 or 0)
    if reported ~= 1 then sum.unreported = sum.unreported + 1 end
  end
end
local names = {}
for name in pairs(totals) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local sum = totals[name]
  print(("%-40s %3d jobs, slowest %.2f s, late %d, not reported once %d"):format(name, sum.jobs,
    sum.slowest, sum.left, sum.unreported))
end
