-- tools/busted_tap.lua: busted's output handler for our test runner: TAP, with times.
--
--   busted -o tools/busted_tap.lua -Xoutput FILE some_spec.lua
--
-- busted's own TAP handler dies on a spec with a syntax error, forgets errors in `describe` and
-- `setup`, reports no times, and shares stdout with the spec. This one writes to FILE. The plan
-- comes last, and only when the run reached its end: os.exit in a spec leaves none.
--
-- Random numbers begin at LT_TEST_SEED (1) in each file and in each case, so that a case fails
-- again as it failed, and alone as in its file.
--
-- LT_TEST_SAMPLE=P/N: the first case of the file runs, and those whose number is P modulo N.
local base = require "busted.outputHandlers.base"
local lt = require "ltrain"
local pretty = require "pl.pretty"

local SEED <const> = math.tointeger(tonumber(os.getenv "LT_TEST_SEED")) or 1
local PHASE <const>, STRIDE <const> = (os.getenv "LT_TEST_SAMPLE" or "0/1"):match "^(%d+)/(%d+)$"

return function(options)
  local busted = require "busted"
  local handler = base()
  local out = io.stdout
  if options.arguments and options.arguments[1] then
    out = assert(io.open(options.arguments[1], "w"))
  end
  local count, tests, registered, seen = 0, 0, 0, 0

  local function say(text)
    out:write(text, "\n")
    out:flush()
  end

  local function comment(text)
    say("# " .. tostring(text):gsub("\n", "\n# "))
  end

  -- The place of the assertion when we know it, else that of the `it`.
  local function show_failure(t)
    say(("not ok %d - %s"):format(count, t.name))
    local place = t.element.trace or t.trace
    if place and place.short_src then
      comment(("%s:%d"):format(place.short_src, place.currentline or 0))
    end
    local message = t.message
    if message == nil then message = "(no message)" end
    comment(type(message) == "string" and message or pretty.write(message))
    if t.trace and t.trace.traceback then comment(t.trace.traceback) end
  end

  local function test_end(element, _, status)
    count, tests = count + 1, tests + 1
    if status == "success" then
      say(("ok %d - %s"):format(count, handler.successes[#handler.successes].name))
    elseif status == "pending" then
      local t = handler.pendings[#handler.pendings]
      say(("ok %d - %s # SKIP %s"):format(count, t.name, tostring(t.message or "")))
    else
      local list = status == "failure" and handler.failures or handler.errors
      show_failure(list[#list])
    end
    if element.duration then say(("# took %.4f"):format(element.duration)) end
    lt.seed(SEED) -- for the next: its before_each may draw, or seed
    return nil, true
  end

  -- Errors and failures outside any test: a syntax error, a failing describe, setup, teardown.
  local function outside(element)
    if element.descriptor ~= "it" then
      count = count + 1
      show_failure(handler.errors[#handler.errors])
    end
    return nil, true
  end

  -- Those that a filter leaves out do not come here: filters are asked first.
  local function register()
    seen = seen + 1
    local chosen = seen == 1 or seen % STRIDE == PHASE % STRIDE
    if chosen then registered = registered + 1 end
    return nil, chosen
  end

  local function suite_end()
    say(("# tests %d of %d"):format(tests, registered))
    say(("1..%d"):format(count))
    return nil, true
  end

  lt.seed(SEED)
  for _, kind in ipairs { "it", "pending" } do
    busted.subscribe({ "register", kind }, register, { priority = 1 })
  end
  busted.subscribe({ "test", "end" }, test_end)
  busted.subscribe({ "error" }, outside)
  busted.subscribe({ "failure" }, outside)
  busted.subscribe({ "suite", "end" }, suite_end)
  return handler
end
