--- stdlib/cli/error_file.lua: writes why a rank failed to the file that its launcher reads:
--- LTRAIN_ERROR_FILE of `ltrain launch`, TORCHELASTIC_ERROR_FILE of torchrun.
--
-- All ranks of a world end with one failure, so each of their files names the rank that failed
-- first.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local overrides = require "ltrain.trainer.setup.overrides"
local restarts = require "ltrain.core.restarts"

local error_file = {}

local OF_SIGNAL <const> = 128

-- As PyTorch's record_exception writes it; torchrun prints the earliest.
local function for_torchrun(failure, time)
  return { message = { message = failure.text, extraInfo = {
    timestamp = ("%d"):format(time // 1), py_callstack = failure.stack or failure.text } } }
end

local function write(path, value)
  local ok <const>, message = c.io.write_file(path, c.io.json_encode(value, { plain = true }))
  if not ok then console.say_anywhere(message) end
end

--- failure: {text =, rank = that failed first, status = exit status, stack = a traceback or nil}.
--- Nothing without a launcher that asks for it, and of ranks that stopped because they were asked.
function error_file.write(failure)
  local own <const>, torchrun = c.runtime.getenv "LTRAIN_ERROR_FILE",
    c.runtime.getenv "TORCHELASTIC_ERROR_FILE"
  if failure.status == restarts.STOPPED or not (own or torchrun) then return end
  local time <const> = c.runtime.time()
  local number <const> = failure.status - OF_SIGNAL
  if own and own ~= "" then
    local of_none <const> = failure.rank < 0
    write(own, { message = failure.text, rank = not of_none and failure.rank or nil,
      step = overrides.failed_step, time = time, signal = number > 0 and number or nil })
  elseif torchrun and torchrun ~= "" and number <= 0 then
    write(torchrun, for_torchrun(failure, time))
  end
end

return error_file
