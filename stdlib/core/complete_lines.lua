--- stdlib/core/complete_lines.lua: iterates over the lines of a text that end with a line break.

--- `for line, after in whole_lines(text)`: each without its "\n", and where the next one begins.
--- What follows the last "\n" is none: a process may be writing it, or was killed meanwhile. (A
--- pattern, "([^\n]*)\n", looks for the end of such a rest from each of its bytes: of one of a
--- megabyte for hours.)
return function(text)
  local at = 1
  return function()
    local stop = text:find("\n", at, true)
    if not stop then return nil end
    local line = text:sub(at, stop - 1)
    at = stop + 1
    return line, at
  end
end
