--- stdlib/apps/init.lua: what the apps add to the commands of stdlib/cli. Each is loaded when it is
--- used: start-up counts.
--
-- Nothing below requires an app: a build without them (LT_APPS=OFF) has the library and
-- `ltrain run`.
local commands = require "ltrain.apps.commands"
local overrides = require "ltrain.trainer.setup.overrides"

local apps = { rows = commands.list, options = commands.options }

local beside -- the dashboard that was started with a run

local function prepare_debugger(options)
  if not options.debug and not options.debug_rank then return end
  require "ltrain.apps.debugger.prompt".only_rank = options.debug_rank
  if options.debug then require "ltrain.apps.debugger.stop_at_errors"() end
  if options.debug == "nan" then
    overrides.set("detect_anomaly", true)
    overrides.stops_at_infinities = true
  end
end

--- Before a script runs: what its options want of the apps.
function apps.prepare(word, parsed, host)
  local options = parsed.options
  table.insert(overrides.callbacks, require "ltrain.apps.sweep.rehearsed_metrics".callback())
  overrides.control = options.dashboard_control or false
  if options.dashboard then
    beside = require "ltrain.apps.dashboard.background_process"
    beside.begin(options)
  end
  if word.name ~= "check" and word.name ~= "plan" then
    function overrides.before_loops()
      require "ltrain.apps.check.warn_of_names"(parsed.script, host.globals)
    end
  end
  prepare_debugger(options)
end

--- After the script and its loops; `failed`: by an error.
function apps.finish(failed)
  if beside then beside.finish(failed) end
end

--- Opens a prompt, after `ltrain run` with options (apps/prompt/command.lua); returns the exit
--- status.
function apps.open_prompt(host, options)
  local prompt = require "ltrain.apps.prompt.command"
  if options then return prompt.open(host, options) end
  return prompt.main(host)
end

return apps
