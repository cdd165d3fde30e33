-- spec/bench/messages.lua: a tensor from one rank to another, send and recv, beside PyTorch's over
-- gloo.
--
--   ./dev bench messages [ROUNDS]       5 rounds
--
-- Both systems take turns; a value is the shortest time of all rounds, for these machines are busy.
local ROUNDS <const> = math.tointeger(tonumber(arg[1] or 5))
local SIZES <const> = { { 4096, 1000 }, { 1 << 20, 100 }, { 16 << 20, 20 }, { 64 << 20, 5 } }
local here <const> = arg[0]:match("^(.*)/[^/]*$") or "."

local OURS <const> = [[
local clock, lt = require("ltrain.c").runtime.clock, require "ltrain"
local bytes, repetitions = ...
lt.dist.launch(2, function(rank)
  local x, d = lt.ones(bytes // 4), lt.dist
  for _ = 1, 5 do
    d.barrier()
    local begin = clock()
    for _ = 1, repetitions do
      if rank == 0 then d.send(x, 1) else d.recv(x, { from = 0 }) end
    end
    d.barrier()
    if rank == 0 then print("seconds", (clock() - begin) / repetitions) end
  end
end)
]]

local function shortest(command, before)
  local pipe <close> = assert(io.popen(command))
  for line in pipe:lines() do
    local seconds = tonumber(line:match "^seconds%s+(%S+)")
    if seconds then before = math.min(before, seconds) end
  end
  return before
end

local pipe <close> = assert(io.popen(("bash '%s/torch_venv.sh' torch numpy"):format(here)))
local venv = assert(pipe:read "l", "bench messages: no virtual environment")
local script <const> = os.tmpname()
local file <close> = assert(io.open(script, "w"))
file:write((OURS:gsub("%.%.%.", "tonumber(arg[1]), tonumber(arg[2])", 1)))
file:flush()
print(("%-10s %12s %12s %7s"):format("bytes", "ltrain ms", "gloo ms", "ratio"))
for _, row in ipairs(SIZES) do
  local ours, theirs = math.huge, math.huge
  for _ = 1, ROUNDS do
    ours = shortest(("'%s' '%s' %d %d"):format(os.getenv "LTRAIN" or arg[-1], script,
      row[1], row[2]), ours)
    theirs = shortest(("'%s/bin/python' '%s/messages.py' %d %d 2>/dev/null"):format(venv, here,
      row[1], row[2]), theirs)
  end
  print(("%-10d %12.3f %12.3f %7.2f"):format(row[1], ours * 1e3, theirs * 1e3, theirs / ours))
end
os.remove(script)
