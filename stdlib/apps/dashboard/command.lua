--- stdlib/apps/dashboard/command.lua: `ltrain dashboard [RUN...]`: runs in a browser, until Ctrl-C.
local Dashboard = require "ltrain.apps.dashboard"
local assets = require "ltrain.apps.dashboard.assets"
local c = require "ltrain.c"
local protected_call = require "ltrain.cli.protected_call"
local refuse = require "ltrain.cli.refuse"
local version = require "ltrain.loggers.version"

local dashboard = {}

-- The folders that are named, or the default one; nil and what is wrong.
local function roots_of(parsed)
  local roots = { parsed.script, table.unpack(parsed.args) }
  if #roots == 0 then
    if c.io.kind(version.NAME) ~= "folder" then
      return nil, ("which runs? (there is no folder %s here)"):format(version.NAME)
    end
    return { version.NAME }
  end
  for i, root in ipairs(roots) do
    if c.io.kind(root) ~= "folder" then return nil, ("%s: there is no such folder"):format(root) end
    roots[i] = #root > 1 and root:gsub("/+$", "") or root
  end
  return roots
end

local function serve(server, host)
  while not host.signal() do
    local ok, message = server:step(host.stopped)
    if not ok then error(message, 0) end
  end
end

--- The word's main: returns the exit status.
function dashboard.main(word, parsed, host)
  local o = parsed.options
  local roots, message = roots_of(parsed)
  if not roots then return refuse(host, word, message) end
  local function say(text) host.complain(("ltrain: dashboard: %s\n"):format(text)) end
  local server
  server, message = Dashboard.open(roots, { port = o.port, control = o.dashboard_control,
    warn = function(text) say("warning: " .. text) end,
    entered = not o.beside and function(address)
      say("it is open in a browser; for another one: " .. address)
    end or nil })
  if not server then
    host.complain(("ltrain: %s\n"):format(message))
    return 1
  end
  if assets.problem() then say(assets.problem()) end
  say(server:address())
  local ok, failure = protected_call.call(host, serve, server, host)
  server:close()
  if ok or failure.stopped then return host.signal() or 0 end
  return protected_call.report(host, failure)
end

return dashboard
