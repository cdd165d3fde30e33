-- spec/bench/collectives.lua: times of single collectives between ranks, for ./dev bench comm and
-- ./dev bench slow_links.
--
--   ltrain collectives.lua SECONDS [RANKS]   on each of the ranks; with RANKS it forks them
--
-- Each for a part of so many seconds, one after the other without anything between them; rank 0
-- prints the mean, the median and the shortest time: of ranks that wait for each other in turn, a
-- short one follows on a long one.
local c = require "ltrain.c"
local lt = require "ltrain"

local dist, clock = lt.dist, c.runtime.clock
local seconds, ranks = tonumber(arg[1]), tonumber(arg[2])
local LEAST <const> = 3

local function all_reduce(bytes)
  local x = lt.zeros(bytes // 4)
  return function() dist.all_reduce_(x) end
end

local CASES <const> = {
  { "barrier", function() return dist.barrier end },
  { "all_reduce of a number", function() return function() dist.all_reduce(1.0) end end },
  { "all_gather of a number", function() return function() dist.all_gather(1.0) end end },
  { "all_reduce, 64 B", function() return all_reduce(64) end },
  { "all_reduce, 16 KB", function() return all_reduce(16384) end },
  { "all_reduce, 256 KB", function() return all_reduce(262144) end },
  { "all_reduce, 1 MB", function() return all_reduce(1048576) end },
  { "all_reduce, 5.2 MB", function() return all_reduce(5200000) end },
  { "all_reduce, 20 MB", function() return all_reduce(20000000) end },
}

local function measure(name, run)
  local times, began = {}, clock()
  local repeats = 1 -- between two looks at the clock, so that the broadcast after them costs little
  run()
  repeat
    for _ = 1, repeats do
      local start = clock()
      run()
      times[#times + 1] = clock() - start
    end
    repeats = math.min(2 * repeats, 64)
    -- Rank 0 decides how many there are; the others follow.
    local goes_on = #times < LEAST or clock() - began < seconds / #CASES
  until not dist.broadcast(goes_on)
  local total = 0
  for _, time in ipairs(times) do total = total + time end
  table.sort(times)
  if dist.rank() == 0 then
    print(("  %-24s %9.3f ms, %9.3f, %9.3f"):format(name, 1e3 * total / #times,
      1e3 * times[(#times + 1) // 2], 1e3 * times[1]))
  end
end

local function run()
  c.runtime.set_threads(1)
  for _, case in ipairs(CASES) do measure(case[1], case[2]()) end
end

if ranks then dist.launch(ranks, run) else run() end
