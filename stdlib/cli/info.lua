--- stdlib/cli/info.lua: `ltrain info`: what this build contains; with a file as `ltrain inspect`.
local c = require "ltrain.c"
local commands = require "ltrain.cli.commands"
local refuse = require "ltrain.cli.refuse"

local info = {}

local function row(host, name, text)
  host.write(("%-12s %s\n"):format(name, text))
end

-- The devices of backends that the user has put into LTRAIN_BACKENDS, besides the parts `known`.
local function print_backends(host, known)
  local folder = c.runtime.getenv "LTRAIN_BACKENDS"
  for _, file in ipairs(folder and c.io.list_folder(folder) or {}) do
    local name = file:match "^ltrain_([%l%d_]+)%.so$"
    if name and not known[name] then
      local count, why = c.runtime.devices(name)
      if count then
        row(host, name, ("yes: %d device%s: %s"):format(count, count == 1 and "" or "s",
          c.runtime.device_name(name)))
      elseif not why:find "unknown device" then -- else it has collectives alone
        row(host, name, "no: " .. why:gsub("^" .. name .. ": ", ""))
      end
    end
  end
end

local function print_build(host)
  row(host, "ltrain", host.version)
  row(host, "lua", host.lua_version)
  local known = {}
  for _, part in ipairs(c.runtime.parts()) do
    row(host, part.name, (part.present and "yes: " or "no: ") .. part.text)
    known[part.name] = true
  end
  print_backends(host, known)
  row(host, "threads", ("%d an operation (--threads), %d cores online"):format(
    c.runtime.get_threads(), c.runtime.cpu_count()))
end

--- The word's main: returns the exit status.
function info.main(word, parsed, host)
  local inspect <const> = commands.by_name.inspect
  if parsed.script and not inspect then
    return refuse(host, word, "this build does not read files (LT_APPS=OFF)")
  elseif parsed.script then
    return inspect.load().main(word, parsed, host)
  end
  print_build(host)
  return 0
end

return info
