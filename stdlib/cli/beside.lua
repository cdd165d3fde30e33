--- stdlib/cli/beside.lua: a dashboard that is started beside a run, and ends with it.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local records = require "ltrain.runs.record"

local process = c.runtime.process

-- What the folder of a run is in: ltrain_logs of ltrain_logs/version_3.
local function above(folder)
  return folder:match "^(.+)/[^/]+/*$" or folder:find "^/" and "/" or "."
end

--- Has the first run that begins start one. o: the options of the command.
return function(o)
  function records.opened(folder)
    records.opened = nil
    local command = { process.executable(), "dashboard", above(folder), "--beside" }
    if o.dashboard_control then command[#command + 1] = "--dashboard_control" end
    local pid, message = process.start(command)
    if not pid then console.say("warning: dashboard: " .. message) end
  end
end
