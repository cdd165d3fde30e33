--- stdlib/apps/dashboard/background_process.lua: `ltrain run --dashboard`: starts `ltrain
--- dashboard` as a background process, which ends with the run.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local records = require "ltrain.runs.record"

local process = c.runtime.process

local background_process = {}

local shown -- the folder that a dashboard was started for
local wanted = false

-- What the folder of a run is in: ltrain_logs of ltrain_logs/version_3.
local function above(folder)
  return folder:match "^(.+)/[^/]+/*$" or folder:find "^/" and "/" or "."
end

--- Starts one of the runs in a folder. o: the options of the command.
function background_process.start(folder, o)
  wanted, shown = true, folder
  local command = { process.executable(), "dashboard", folder, "--beside" }
  if o.dashboard_control then command[#command + 1] = "--dashboard_control" end
  local pid, message = process.start(command)
  if not pid then console.say("warning: dashboard: " .. message) end
end

--- Has the first run that begins start one.
function background_process.begin(o)
  wanted = true
  function records.opened(folder)
    records.opened = nil
    background_process.start(above(folder), o)
  end
end

--- The run ends: says how to see it again, or why nothing was shown, unless it failed before.
function background_process.finish(failed)
  if not wanted then return end
  if shown then
    console.say(("dashboard: ends with the run; `ltrain dashboard %s` shows it again")
      :format(shown))
  elseif not failed then
    console.say("dashboard: there was nothing to show: no fit had a folder")
  end
end

return background_process
