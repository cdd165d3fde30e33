--- stdlib/apps/check/warn_of_names.lua: warns of names of the script that nothing has defined.
--
-- Lua takes such a name for nil: `{shuffle = shufle}` shuffles nothing, `return los` skips each
-- step, and no error says so. It is said before the first loop begins, when the script has made its
-- globals, and not after hours.
local c = require "ltrain.c"
local console = require "ltrain.core.console"

--- Warns once of each; `path`: of the script, `globals`: what it has.
return function(path, globals)
  local text = c.io.kind(path) == "file" and c.io.read_file(path)
  if not text then return end
  local ok, tree, vars = pcall(require "ltrain.apps.check.source.parse", text)
  if not ok then return end
  local seen = {}
  require "ltrain.apps.check.source.unknown_names"(tree, vars, globals, function(name, line, remedy)
    if seen[name] then return end
    seen[name] = true
    console.say(("warning: %s:%d: nothing is called '%s', it is nil: %s"):format(path, line, name,
      remedy))
  end)
end
