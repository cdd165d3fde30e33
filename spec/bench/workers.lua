-- spec/bench/workers.lua: epochs of a data set whose `get` takes some milliseconds.
--
--   ./dev bench workers [MILLISECONDS]
--
-- The same epoch with no worker, one and two, in turn, three times each; the best of each, and what
-- two workers gain over one: when `get` computes, which needs two cores that are free, and when it
-- sleeps. Also the time to hand over batches of which nothing is computed.
local lt = require "ltrain"

local MILLISECONDS <const> = tonumber(arg and arg[1]) or 5
local ROUNDS <const> = 3
local clock <const> = require("ltrain.c").runtime.clock

local function seconds_of(loader)
  local start = clock()
  for _ in loader:batches() do end
  return clock() - start
end

-- One that computes, as long as that takes; one that sleeps (in a shell, which adds a millisecond).
local Computing = lt.data.Dataset:extend("Computing")
function Computing:init(loops) self.loops = loops end
function Computing:__len() return 200 end
function Computing:get(i)
  local x = 0.0
  for k = 1, self.loops do x = x + math.sin(k) end
  return { x = x, i = i }
end

local Sleeping = lt.data.Dataset:extend("Sleeping")
function Sleeping:__len() return 200 end
function Sleeping:get(i)
  os.execute(("sleep %g"):format(1e-3 * MILLISECONDS))
  return i
end

-- Lua's own speed says how many loops take a millisecond.
local function loops_of(milliseconds)
  local set, start = Computing(100000), os.clock()
  for _ = 1, 20 do set:get(1) end
  return math.floor(100000 * milliseconds * 1e-3 * 20 / (os.clock() - start))
end

local function compare(name, set)
  local best = {}
  for _ = 1, ROUNDS do
    for workers = 0, 2 do
      local loader = lt.data.DataLoader(set, { batch_size = 5, num_workers = workers })
      best[workers] = math.min(best[workers] or math.huge, seconds_of(loader))
    end
  end
  for workers = 0, 2 do
    print(("%-9s %d workers  %6.3f s  %5.2f ms a sample"):format(name, workers, best[workers],
      1e3 * best[workers] / #set))
  end
  print(("%-9s two workers over one: %.2f"):format(name, best[1] / best[2]))
end

compare("computing", Computing(loops_of(MILLISECONDS)))
compare("sleeping", Sleeping())

local Images = lt.data.Dataset:extend("Images")
local image = lt.rand(3, 224, 224)
function Images:__len() return 512 end
function Images:get() return image end
for _, workers in ipairs { 0, 2 } do
  local loader = lt.data.DataLoader(Images(), { batch_size = 32, num_workers = workers })
  local least = math.huge
  for _ = 1, ROUNDS do least = math.min(least, seconds_of(loader)) end
  print(("%d workers, batches of 19 MB: %.2f GB/s"):format(workers,
    512 * image:numel() * 4 / least / 1e9))
end
