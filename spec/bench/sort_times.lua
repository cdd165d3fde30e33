-- spec/bench/sort_times.lua: the times of sort.sh here, beside those of PyTorch on standard input.
local lt = require "ltrain"

local n, rounds = math.tointeger(arg[1]), math.tointeger(arg[2])
local x = lt.randn(n)
local rows = x:narrow(1, 1, n // 1000 * 1000):view(-1, 1000)
local wide, integers = x:to "f64", lt.randint(-(1 << 62), 1 << 62, { n })
local CALLS <const> = {
  sort_f32 = function() return x:sort() end,
  sort_f64 = function() return wide:sort() end,
  sort_i64 = function() return integers:sort() end,
  sort_rows = function() return rows:sort() end,
  randperm = function() return lt.randperm(n) end,
}

for line in io.lines() do
  local name, theirs = line:match("^(%S+) (%S+)$")
  local least = math.huge
  for _ = 1, rounds do
    collectgarbage()
    local start = os.clock()
    CALLS[name]()
    least = math.min(least, (os.clock() - start) * 1e3)
  end
  local text = "%-10s %8.1f ms, PyTorch %8.1f ms, ratio %.2f"
  print(text:format(name, least, theirs, least / theirs))
end
