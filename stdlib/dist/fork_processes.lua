--- stdlib/dist/fork_processes.lua: runs a function on forked processes.
--
-- lt.dist.launch and the Trainer's strategies stand on it.
local c = require "ltrain.c"
local interrupt = require "ltrain.core.interrupt"

local d = c.dist

-- Raises what ended the launch: the outcome; rank 0's own error as it is where that is not text.
local function fail(outcome, ok, value)
  if outcome.class == "interrupted" then interrupt.raise_of_ranks(outcome, not ok and value) end
  local own = not ok and outcome.class == "raised" and outcome.rank == 0
  if own and type(value) ~= "string" then error(value, 0) end
  d.blame(outcome.text, outcome.status)
end

--- Runs fn(rank) on n processes, n - 1 of them forked here; returns rank 0's results. Options:
--- what, folder, timeout, launch_timeout, fork_with_threads (see runtime/launch/launch.h), and
--- `device`, which the ranks are to run on. A process that has used some devices (world.stays) has
--- no children that can use them: such ranks return here, each with its own results, and continue
--- with the script until it ends.
return function(n, fn, options)
  local rank = d.fork(n, options)
  local results = table.pack(d.run(fn, rank))
  local ok = results[1]
  if ok and d.world().stays and not d.outcome() then
    d.stay()
    return table.unpack(results, 2, results.n)
  end
  if ok then d.leave() end
  local outcome = d.finish() -- here the children end
  d.set_hook "" -- an error left the one that it was raised in
  if outcome then fail(outcome, ok, results[2]) end
  return table.unpack(results, 2, results.n)
end
