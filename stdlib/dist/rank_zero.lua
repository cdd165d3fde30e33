--- stdlib/dist/rank_zero.lua: functions that one rank runs for all, and spans that others wait for.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"

local d = c.dist

local rank_zero = {}

local function check_function(who, fn)
  if class.is_callable(fn) then return end
  errors.blame("%s: needs a function: got %s", who, errors.show(fn))
end

--- Runs fn(...) without a timeout for the ranks that wait for this one. Returns what fn returns.
function rank_zero.long(fn, ...)
  check_function("long", fn)
  local _ <close> = d.span()
  return fn(...)
end

-- What rank 0 sends to the others: an error as text, or its results, packed. Errors of packing too.
local function pack_results(who, ok, results)
  if not ok then return { error = tostring(results[1]) } end
  local packed, what = pcall(d.encode, results, who, "result")
  return packed and { packed = what } or { error = what }
end

-- Rank 0 runs fn; the others receive its error, if it raised one. Returns its results there;
-- elsewhere nil, or with `share` the same results. Messages begin with `who`.
local function run_first(who, share, fn, ...)
  check_function(who, fn)
  if d.rank() > 0 then
    local received = collectives.broadcast(nil)
    if received.error then errors.blame("%s: rank 0: %s", who, received.error) end
    return share and d.decode(received.packed)
  end
  local results = table.pack(pcall(rank_zero.long, fn, ...))
  local ok, value = results[1], results[2]
  table.remove(results, 1)
  results.n = results.n - 1
  local message = pack_results(who, ok, ok and not share and { n = 0 } or results)
  collectives.broadcast(message)
  if not ok then error(value, 0) end
  if message.error then error(message.error, 0) end
  return results
end

--- Runs fn(...) on rank 0, then on the other ranks; returns what it returns on this rank. An error
--- on rank 0 is raised on all ranks.
function rank_zero.rank_zero_first(fn, ...)
  local results = run_first("rank_zero_first", false, fn, ...)
  if results then return table.unpack(results, 1, results.n) end
  return fn(...)
end

--- Runs fn(...) on rank 0 only; all ranks return its results, which must be serializable. An error
--- is raised on all ranks.
function rank_zero.on_rank_zero(fn, ...)
  local results = run_first("on_rank_zero", true, fn, ...)
  return table.unpack(results, 1, results.n)
end

return rank_zero
