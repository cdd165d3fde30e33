-- spec/bench/dispatch.lua: what an operation costs from Lua: an 8-element f32 add, with tape.
--
--   ./dev bench dispatch
local c = require "ltrain.c"
local lt = require "ltrain"

local a, b = lt.ones(8, {requires_grad = true}), lt.ones(8)
local best = math.huge
for _ = 1, 9 do
  local start = c.runtime.clock()
  for i = 1, 100000 do
    local _ = a + b
    if i % 1000 == 0 then c.runtime.collect_boundary() end
  end
  best = math.min(best, (c.runtime.clock() - start) / 100000)
end
print(("add of 8 f32 from Lua, tape: %.0f ns"):format(best * 1e9))
