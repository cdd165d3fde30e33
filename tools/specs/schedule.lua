-- tools/specs/schedule.lua: which spec file begins next, and when (tools/run_specs.lua).
--
-- The longest first: a long one that begins last runs alone at the end (Graham, Bounds on
-- multiprocessing timing anomalies, 1969). Many files wait most of their time, for timeouts or for
-- mpirun to end, so that as many files as there are cores would leave cores idle: others begin when
-- a core is (tools/specs/start.sh).
local system = dofile "tools/specs/system.lua"
local tags = dofile "tools/specs/tags.lua"

-- Seconds that a file takes that never ran, by its tag.
local UNKNOWN <const> = { waits = 10, slow = 1 }

local schedule = {}

--- Seconds that each file took in the last runs, by file.
function schedule.read_times(build)
  local times = {}
  for seconds, file in system.read_all(build .. "/spec_times"):gmatch "([%d.]+)\t([^\n]+)\n" do
    times[file] = tonumber(seconds)
  end
  return times
end

--- Keeps them for the next run, those of files of this tree and of the build.
function schedule.write_times(build, times)
  local rows = {}
  for file, seconds in pairs(times) do
    local is_ours = file:find "^spec/" or file:find(build .. "/", 1, true) == 1
    if is_ours then rows[#rows + 1] = ("%8.2f\t%s\n"):format(seconds, file) end
  end
  table.sort(rows, function(a, b) return a > b end)
  system.write_all(build .. "/spec_times", table.concat(rows))
end

-- What a file that never ran may take.
local function unknown(file)
  local set = tags.of(tags.source_of(file:match "^(.-) on %w+" or file))
  return set.waits and UNKNOWN.waits or set.slow and UNKNOWN.slow or 0
end

--- Orders the files by what they took; of those that never ran the ones that wait come first, then
--- the slow ones.
function schedule.sort_longest_first(files, times)
  local seconds, place = {}, {}
  for i, file in ipairs(files) do
    place[file] = i
    seconds[file] = times[file] or unknown(file)
  end
  table.sort(files, function(a, b)
    if seconds[a] ~= seconds[b] then return seconds[a] > seconds[b] end
    return place[a] < place[b]
  end)
end

--- Whether half a core is idle for the next fifth of a second.
function schedule.is_core_idle()
  local idle, began = system.idle_seconds(), system.now()
  os.execute "sleep 0.2"
  return system.idle_seconds() - idle >= (system.now() - began) / 2
end

return schedule
