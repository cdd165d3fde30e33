--- stdlib/prompt/commands.lua: the `:commands` of every prompt.
local commands = {}

commands.quit = {
  doc = "leave the prompt", run = function(session) session:leave() end,
}

return commands
