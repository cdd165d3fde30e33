-- spec/bench/progress.lua: how far an asynchronous all_reduce gets while its ranks compute.
--
--   ./dev bench progress [MEGABYTES] [ROUNDS]      16 MB, 5 rounds
--
-- 2 ranks, 1 thread each. Of each round: the synchronous call; a second of products of [256, 256];
-- the same after an asynchronous call, and the wait for it. Shortest times of rank 0.
local c = require "ltrain.c"
local lt = require "ltrain"

local MEGABYTES <const>, ROUNDS <const> = tonumber(arg[1] or 16), tonumber(arg[2] or 5)
local SECONDS <const> = 1
local clock <const> = c.runtime.clock

c.runtime.set_threads(1)
lt.dist.launch(2, function(rank)
  local x = lt.ones(MEGABYTES * 1024 * 1024 // 4 | 0)
  local a = lt.randn(256, 256)
  -- As many products as take a second without anything beside them.
  local products, began = 0, clock()
  repeat
    a:matmul(a)
    products = products + 1
  until clock() - began > SECONDS
  products = lt.dist.all_reduce(products, { op = "min" })
  local function compute() for _ = 1, products do a:matmul(a) end end
  local best = { sync = math.huge, alone = math.huge, beside = math.huge, wait = math.huge }
  local function time(name, fn)
    lt.dist.barrier()
    local from = clock()
    fn()
    best[name] = math.min(best[name], clock() - from)
  end
  for _ = 1, ROUNDS do
    time("sync", function() lt.dist.all_reduce_(x) end)
    time("alone", compute)
    local handle
    time("beside", function()
      handle = lt.dist.all_reduce_(x, { async = true })
      compute()
      local from = clock()
      handle:wait()
      best.wait = math.min(best.wait, clock() - from)
    end)
  end
  if rank ~= 0 then return end
  print(("all_reduce of %g MB: %.2f ms; %d products: %.1f ms; both: %.1f ms, of which the wait "
    .. "%.3f ms (%.1f %% of the call)"):format(MEGABYTES, best.sync * 1e3, products,
    best.alone * 1e3, best.beside * 1e3, best.wait * 1e3, best.wait / best.sync * 100))
end)
