--- stdlib/apps/plan/meters.lua: what a rank computes between two moments: by the clock, or by the
--- operations that a trace has of it.
--
-- A meter has start(), stop(), which returns { seconds =, .. } of the time since, now(), seconds on
-- a clock of its own, and close().
local c = require "ltrain.c"
local flops = require "ltrain.nn.flops"
local tensor_bytes = require "ltrain.apps.plan.tensor_bytes"

local meters = {}

local Clock = {}
Clock.__index = Clock

--- Of the time that passes.
function meters.clock() return setmetatable({}, Clock) end

function Clock:start() self.began = c.runtime.clock() end
function Clock:stop() return { seconds = c.runtime.clock() - self.began } end
function Clock.now() return c.runtime.clock() end
function Clock.close() end

local Trace = {}
Trace.__index = Trace

--- Of the time that operations take by rates (rates.lua): each as long as its arithmetic or its
--- memory, whichever takes longer. Segments have `flops` and `bytes` too. (The roofline model:
--- Williams et al. 2009.)
function meters.trace(rates)
  local calls = {}
  local meter = setmetatable({ rates = rates, calls = calls, scope = c.runtime.trace(calls),
    total = 0 }, Trace)
  meter:start()
  return meter
end

local function clear(self)
  for i = #self.calls, 1, -1 do self.calls[i] = nil end
end

function Trace:start()
  clear(self)
  self.sum = { seconds = 0, flops = 0, bytes = 0 } -- of the segment
end

function Trace:now()
  local rates, sum = self.rates, self.sum
  local before = sum.seconds
  for _, call in ipairs(self.calls) do
    if not call.view then
      local n = flops.of_call(call)
      local bytes = tensor_bytes.of_all(call.inputs) + tensor_bytes.of_all(call.outputs)
      sum.flops, sum.bytes = sum.flops + n, sum.bytes + bytes
      sum.seconds = sum.seconds + math.max(n / rates.flops, bytes / rates.bandwidth)
        + rates.call_seconds
    end
  end
  clear(self)
  self.total = self.total + sum.seconds - before
  return self.total
end

function Trace:stop()
  self:now()
  local sum = self.sum
  self:start()
  return sum
end

function Trace:close() local _ <close> = self.scope end

return meters
