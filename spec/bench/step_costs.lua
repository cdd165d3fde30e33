-- spec/bench/step_costs.lua: seconds of what ranks add to a step beside the gradients, measured at
-- the end of a running fit; all ranks call it.
local consensus = require "ltrain.trainer.ranks.consensus"
local replica_checks = require "ltrain.trainer.ranks.replica_checks"
local external_writes = require "ltrain.optim.external_writes"

local clock <const> = require("ltrain.c").runtime.clock

local EVERY <const> = 50 -- steps between comparisons, the Trainer's default

-- Seconds of one call of fn: the shortest of 200 rounds of n calls.
local function seconds(n, fn)
  local best = math.huge
  for _ = 1, 200 do
    local start = clock()
    for _ = 1, n do fn() end
    best = math.min(best, (clock() - start) / n)
  end
  return best
end

--- `state` is that of the loop (trainer.running). Returns seconds a step by name: `header`, what
--- ranks exchange with it; `compare`, the hash of all that they hold, every 50 steps;
--- `places`, whether parameters hang where they did; `writers`, whether others wrote to them.
return function(state, optimizer)
  return {
    header = seconds(10, function() consensus.step(state, 0, 0) end),
    compare = seconds(1, function() replica_checks.compare(state) end) / EVERY,
    places = seconds(100, function() replica_checks.check_places(state) end),
    writers = seconds(100, function() external_writes.look(optimizer) end),
  }
end
