--- stdlib/apps/prompt/command.lua: the prompt of `ltrain`, `ltrain -i` and `ltrain run -i`.
local session = require "ltrain.apps.prompt.session"

local prompt = {}

--- Opens a prompt and returns the exit status. Options: script, its path; returned, what it
--- returned; stack, the traceback of the error that ended it.
function prompt.open(host, options)
  local opened = session.new { host = host, env = host.globals }
  opened.last = options.returned
  if options.stack then opened.failure = { stack = options.stack } end
  if options.script then
    opened.files[1] = { path = options.script, result = options.returned }
  end
  opened:loop()
  return host.signal() == 143 and 143 or 0
end

--- Reads entries until the input ends or `:quit`; returns the exit status.
function prompt.main(host)
  return prompt.open(host, { script = session.script(host), returned = host.returned,
    stack = host.last_stack })
end

return prompt
