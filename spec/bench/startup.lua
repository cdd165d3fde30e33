-- spec/bench/startup.lua: how long the binary takes to start and end; wanted: 5 ms for -e "".
--
--   ./dev bench startup [RUNS]
--
-- Each value is the least and the median over RUNS processes, less what an empty shell command
-- costs. Stock lua5.4 stands beside it.
local c = require "ltrain.c"

local RUNS <const> = tonumber(arg and arg[1]) or 40
local LTRAIN <const> = os.getenv("LTRAIN") or arg[-1]

local function measure(command)
  local times = {}
  for i = 1, RUNS do
    local began = c.runtime.clock()
    assert(os.execute(command .. " >/dev/null"))
    times[i] = (c.runtime.clock() - began) * 1e3
  end
  table.sort(times)
  return times[1], times[RUNS // 2 + 1]
end

local function quoted(words)
  return ("'%s' %s"):format(LTRAIN, words)
end

local shell_least, shell_median = measure "/bin/true"
for _, case in ipairs {
  { "lua5.4 -e ''", "lua5.4 -e ''" },
  { "ltrain -e ''", quoted "-e ''" },
  { "ltrain -e 'lt.zeros(2)'", quoted "-e 'lt.zeros(2)'" },
  { "ltrain -e 'lt.nn.Linear(2, 2)'", quoted "-e 'lt.nn.Linear(2, 2)'" },
  { "... and a product", quoted "-e 'lt.nn.Linear(64, 64)(lt.zeros(64, 64))'" },
  { "ltrain -e 'lt.Trainer{}'", quoted "-e 'lt.Trainer{logger = false}'" },
  { "ltrain run --help", quoted "run --help" },
} do
  local least, median = measure(case[2])
  print(("%-32s %6.2f ms least, %6.2f ms median"):format(case[1], least - shell_least,
    median - shell_median))
end
