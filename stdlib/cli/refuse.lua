--- stdlib/cli/refuse.lua: says why a word could not do what it was asked.
local FAILED <const> = 1

--- Prints it, and returns the exit status.
return function(host, word, message, status)
  host.complain(("ltrain: %s: %s\n"):format(word.name, message))
  return status or FAILED
end
