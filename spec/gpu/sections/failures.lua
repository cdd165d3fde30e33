-- spec/gpu/sections/failures.lua: memory that runs out, an illegal address: one message, and the
-- end.
local section = require "spec.gpu.section"

local quote <const> = section.quote

section.add("memory", "memory that runs out is an error that a script may catch", function()
  section.work(120, section.tiny and "FAKERT_MEMORY=67108864" or "", "exhaust")
end)

local STEPS <const> = [[
local lt = require "ltrain"
local x = %s
local y = x:exp()
print(y:sum():item())
]]

-- On a GPU by a tensor that a program lends, at an address that is nobody's.
section.add("fault", "an illegal address ends the process with one message", function()
  local status, text, said
  if section.EMULATED then
    status, text, said = section.run(60, ("FAKERT_FAULT=cudaErrorIllegalAddress@2 %s %s"):format(
      quote(section.LTRAIN), quote(section.script(STEPS:format 'lt.ones(4, { device = "cuda" })'))))
  else
    local program = section.BUILD .. "/spec/c/illegal_address"
    status, text, said = section.run(60, quote(program))
  end
  if status == 124 then section.fail "it did not end" end
  if status == 0 then section.fail("no error; it printed: %s", section.last_words(text)) end
  local all <const> = text .. said
  if not all:find "cuda:0 cannot be used any more in this process: .*cudaErrorIllegalAddress" then
    section.fail("status %d: %s", status, section.last_words(all))
  end
end)
