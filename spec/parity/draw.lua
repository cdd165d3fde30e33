-- spec/parity/draw.lua: writes random cases and what ltrain makes of them, a line of JSON each.
--
--   ltrain spec/parity/draw.lua SEED CASES > cases.jsonl
local subjects = require "spec.parity.subjects"
local text = require "spec.parity.json_text"

local seed, n = math.tointeger(arg[1]), math.tointeger(arg[2])

math.randomseed(seed)
local have, lack = subjects.names()
io.write(text{lacking = lack, left_out = subjects.left_out()}, "\n")
for k = 1, n do
  local case = subjects.draw(have[(k - 1) % #have + 1])
  local ok, answer = pcall(subjects.run, case)
  case.answer = ok and answer or {error = tostring(answer)}
  io.write(text(case), "\n")
end
