--- stdlib/cli/refuse.lua: prints why a command was refused, and returns its exit status.
local FAILED <const> = 1

--- Prints it, and returns the exit status.
return function(host, word, message, status)
  host.complain(("ltrain: %s: %s\n"):format(word.name, message))
  return status or FAILED
end
