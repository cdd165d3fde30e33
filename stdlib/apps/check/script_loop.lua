--- stdlib/apps/check/script_loop.lua: runs a script, as under `ltrain run`, up to its first loop of
--- a Trainer, which a command examines in its place.
--
-- The script runs in a sandbox (apps/check/sandbox.lua), in one process on the CPU, as far as its
-- first fit, or to its end; then what it returned is what it wanted to fit.
local Report = require "ltrain.apps.check.Report"
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local dry_run = require "ltrain.apps.check.dry_run"
local fit_args = require "ltrain.trainer.setup.fit_args"
local interrupt = require "ltrain.core.interrupt"
local manual_loop = require "ltrain.apps.check.manual_loop"
local overrides = require "ltrain.trainer.setup.overrides"
local refuse = require "ltrain.cli.refuse"
local run = require "ltrain.cli.run"
local sandbox = require "ltrain.apps.check.sandbox"
local syntax = require "ltrain.apps.check.syntax"

local script_loop = {}

local USAGE <const> = 2

--- The script that the command line names: { chunk =, text =, report = a new one }; nil and the
--- exit status when it cannot be read.
function script_loop.read(word, parsed, host)
  local chunk, message, absent = host.load(parsed.script)
  if absent then return nil, refuse(host, word, message, USAGE) end
  local text = c.io.read_file(parsed.script)
  if not text then
    return nil, refuse(host, word, parsed.script .. ": a file is needed", USAGE)
  end
  local report = Report(parsed.script)
  if chunk then return { chunk = chunk, text = text, report = report } end
  syntax(report, message, text)
  host.write(report:text())
  return nil, 1
end

--- Whether run's failure is Ctrl-C or another signal.
function script_loop.is_interrupt(failure, host)
  return interrupt.is(failure) or host.signal() and true or false
end

-- One process on the CPU, whatever the script is written for.
local function place_here(context)
  for name, value in next, { accelerator = "cpu", devices = 1, num_nodes = 1 } do
    if overrides.values[name] == nil then overrides.set(name, value) end
  end
  overrides.unset.profiler, overrides.unset.verify_every, overrides.only = true, true, nil
  function overrides.take(trainer, fn, module, arguments)
    if context.fn ~= "fit" then -- the first fit, or the last other loop
      context.fn, context.trainer, context.module = fn, trainer, module
      context.arguments = arguments
    end
    sandbox.stop "the loop is examined instead"
  end
end

-- What the Trainer says is not for this report; warnings of the library are.
local function listen(context)
  local say, write = console.say, console.write
  console.say = function(text) table.insert(context.said, text) end
  console.write = function() end
  return setmetatable({}, { __close = function() console.say, console.write = say, write end })
end

-- What the script returned becomes what it wanted to fit.
local function take_returned(context, word, returned)
  if returned[1] == nil then
    context.report:skip "the script trains nothing: it calls no loop and returns nothing"
    return
  end
  local bundle, why = run.as_bundle(word, returned)
  if not bundle then
    context.report:error("returned", 0, "nothing to fit: " .. why,
      "let the script return its module, or {model =, data =, trainer =}")
    return
  end
  context.trainer = run.trainer_of(bundle)
  context.arguments = fit_args.read("fit", bundle.data)
  context.fn, context.module = "fit", bundle.model
end

-- Runs the script as far as it goes.
local function load_script(context, word, parsed, chunk)
  local host, returned = context.host, nil
  local ok, failure = dry_run.call(function()
    local _ <close> = manual_loop.watch(context)
    run.take_settings(parsed, host)
    returned = table.pack(host.run(chunk, table.unpack(parsed.args)))
    overrides.check_flags()
    if not context.fn then take_returned(context, word, returned) end
  end)
  if ok then return end
  if host.signal() then error(failure, 0) end -- Ctrl-C
  if sandbox.stopped then
    if context.fn then return end
    local is_stop = sandbox.is_stop(failure)
    context.report:skip(sandbox.stopped, is_stop and failure.where or nil)
  elseif overrides.args.wrong then
    context.usage = overrides.args.wrong:gsub("^run: ", "")
  else
    context.report:raised("load", failure)
  end
end

local function run_and_examine(context, word, parsed, chunk, examine)
  load_script(context, word, parsed, chunk)
  examine(context)
end

--- Runs the script and then examine(context), in the sandbox: true, or false and what ended it.
--- `context` has the `report`; it gets `host`, `said` (what the library printed), and of the loop
--- `fn`, `trainer`, `module` and `arguments`, or `usage`, an error of the command line.
function script_loop.run(context, word, parsed, host, chunk, examine)
  context.host, context.said = host, {}
  local box <close>, message = sandbox.open(context)
  if not box then return false, message end
  local _ <close> = listen(context)
  run.prepare(word, parsed, host)
  host.globals.print = run.print_to_stderr(host) -- stdout has only the report
  place_here(context)
  return xpcall(run_and_examine, function(value)
    if script_loop.is_interrupt(value, host) then return value end
    return host.traceback(c.runtime.error_text(value), 2)
  end, context, word, parsed, chunk, examine)
end

return script_loop
