--- stdlib/cli/prompt.lua: the prompt of `ltrain` and `ltrain -i`.
local session = require "ltrain.prompt.session"

local prompt = {}

--- Reads statements until the input ends or `:quit`; returns the exit status.
function prompt.main(host)
  session.new({ host = host, env = host.globals }):loop()
  return host.signal() == 143 and 143 or 0
end

return prompt
