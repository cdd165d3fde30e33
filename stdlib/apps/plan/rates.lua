--- stdlib/apps/plan/rates.lua: how fast a rank computes: { flops = in products of matrices,
--- bandwidth = of its memory, both a second, call_seconds = of an operation besides }.
local c = require "ltrain.c"

local rates = {}

local CALL_SECONDS <const> = 5e-6 -- of other hardware, where nothing else is given
local WINDOWS <const>, WINDOW_SECONDS <const> = 15, 0.01
local SIDE <const>, ELEMENTS <const> = 768, 1 << 23

-- Seconds of fn(), the least of some windows of calls: others may use the machine.
local function seconds_of(fn)
  fn()
  local least = math.huge
  for _ = 1, WINDOWS do
    local began, calls = c.runtime.clock(), 0
    repeat
      fn()
      calls = calls + 1
    until c.runtime.clock() - began > WINDOW_SECONDS
    least = math.min(least, (c.runtime.clock() - began) / calls)
  end
  return least
end

local function ones(...) return c.ones({ ... }, { dtype = "f32", device = "cpu" }) end

--- Those of this machine's CPU in f32, with the threads that operations use now; in a second.
function rates.measure()
  local _ <close> = c.no_grad()
  local a, small, x, y = ones(SIDE, SIDE), ones(1), ones(ELEMENTS), ones(ELEMENTS)
  local found = { call_seconds = seconds_of(function() small:add_(small) end) }
  found.flops = 2 * SIDE ^ 3 / seconds_of(function() local _ <close> = a:matmul(a) end)
  found.bandwidth = 3 * 4 * ELEMENTS / seconds_of(function() x:add_(y) end)
  return found
end

--- Those that --flops and --bandwidth give.
function rates.given(flops, bandwidth)
  return { flops = flops, bandwidth = bandwidth, call_seconds = CALL_SECONDS }
end

return rates
