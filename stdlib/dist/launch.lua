--- stdlib/dist/launch.lua: lt.dist.launch, which runs a function on several processes.
--
-- The child processes are forks of this one: fn can use its closures and upvalues, and changes to
-- them affect the child's copy only. They exit when fn returns; only rank 0 continues.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local debug_rank = require "ltrain.dist.debug_rank"
local duration = require "ltrain.core.duration"
local errors = require "ltrain.core.errors"
local fork_processes = require "ltrain.dist.fork_processes"
local with_timeout = require "ltrain.dist.with_timeout"

local d = c.dist

local WHO <const> = "dist.launch"

local OPTIONS <const> = {
  timeout = duration.in_seconds("time until a rank that is late, or silent (3 seconds at least), "
    .. "ends the launch; 60 seconds, or LT_TIMEOUT", { above = 0 }),
  fork_with_threads = {
    type = "boolean", default = false,
    doc = "fork although the program has threads of its own",
  },
}

-- A launch of one rank, or in a world that was there before, is under way.
local running = false

local function enter()
  running = true
  return setmetatable({}, { __close = function() running = false end })
end

-- Under mpirun or srun the ranks are there: each runs fn, and all return rank 0's results.
local function joined(n, fn, world, timeout)
  if n ~= world.ranks then
    errors.blame("%s: requested %d ranks in a world of %d%s", WHO, n, world.ranks,
      world.stays and ", which stays until the script ends" or "")
  end
  local _ <close> = enter()
  local _ <close> = with_timeout(timeout)
  local results = table.pack(fn(world.rank))
  results = collectives.broadcast(results)
  return table.unpack(results, 1, results.n)
end

--- Runs fn(rank) on n processes, ranks 0 to n - 1; returns rank 0's results. An error on any rank
--- ends all of them and is raised here, with the number of the rank.
return function(n, fn, options)
  n = config.argument(n, "integer", WHO, "n", { min = 1, max = d.max_ranks })
  if not class.is_callable(fn) then
    errors.blame("%s: needs a function: got %s", WHO, errors.show(fn))
  end
  options = config.check(options, OPTIONS, WHO)
  debug_rank.check(n)
  local world = d.world()
  if running or world.forked and not world.stays then
    errors.blame("%s: called in a launch: ranks cannot launch ranks", WHO)
  end
  if world.ranks > 1 then return joined(n, fn, world, options.timeout) end
  if n > 1 then
    options.what = "lt.dist.launch"
    return fork_processes(n, fn, options)
  end
  local _ <close> = enter()
  return fn(0)
end
