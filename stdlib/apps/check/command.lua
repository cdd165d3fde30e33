--- stdlib/apps/check/command.lua: `ltrain check SCRIPT`: examines a script without training it.
--
-- The script runs as under `ltrain run`, in a sandbox, as far as its first loop of a Trainer, or to
-- its end; what it wanted to train is then examined.
local c = require "ltrain.c"
local calls = require "ltrain.apps.check.source.calls"
local check = require "ltrain.apps.check"
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

local word_check = {}

local USAGE <const>, INTERRUPTED <const> = 2, 130

word_check.declared = run.declared

-- One process on the CPU, whatever the script is written for.
local function place_here(context)
  for name, value in next, { accelerator = "cpu", devices = 1, num_nodes = 1 } do
    if overrides.values[name] == nil then overrides.set(name, value) end
  end
  overrides.unset.profiler, overrides.only = true, nil
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
  context.fn, context.module = "fit", bundle.model
  context.trainer = run.trainer_of(bundle)
  context.arguments = fit_args.read("fit", bundle.data)
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

-- What the Trainer has warned of, but for what is due to the single batch, and what a check of its
-- own says with a line.
local function report_warnings(context)
  local by_check = {}
  for _, finding in ipairs(context.report.findings) do by_check[finding.check] = true end
  local may_step_later = by_check.training or by_check.zero_grad
    or calls(context.source.tree, "step")
  for _, text in ipairs(context.said) do
    local warning = text:match "^warning: (.*)"
    if warning and not warning:find "log_every_n_steps" and not warning:find "^metrics%."
      and not warning:find "are in no optimizer, and do not train"
      and not (may_step_later and warning:find "no optimizer stepped in an epoch") then
      context.report:warn("trainer", 0, warning)
    end
  end
end

local function examine(context, word, parsed, chunk)
  load_script(context, word, parsed, chunk)
  if context.usage then return end
  check.static(context, context.host.globals)
  overrides.take = nil
  if context.fn then check.dynamic(context) end
  report_warnings(context)
end

-- Everything between opening and closing of the sandbox; true, or false and what ended it.
local function guarded(context, word, parsed, chunk)
  local box <close>, message = sandbox.open(context)
  if not box then return false, message end
  local _ <close> = listen(context)
  run.prepare(word, parsed, context.host)
  context.host.globals.print = run.print_to_stderr(context.host) -- stdout has only the report
  place_here(context)
  return xpcall(examine, function(value)
    if interrupt.is(value) or context.host.signal() then return value end
    return context.host.traceback(c.runtime.error_text(value), 2)
  end, context, word, parsed, chunk)
end

--- The word's main: returns the exit status.
function word_check.main(word, parsed, host)
  local chunk, message, absent = host.load(parsed.script)
  if absent then return refuse(host, word, message, USAGE) end
  local text = c.io.read_file(parsed.script)
  if not text then return refuse(host, word, parsed.script .. ": a file is needed", USAGE) end
  local report = check.Report(parsed.script)
  if not chunk then
    syntax(report, message, text)
    host.write(report:text())
    return 1
  end
  local context = check.context(report, check.source(text))
  context.host, context.said = host, {}
  local ok, failure = guarded(context, word, parsed, chunk)
  if context.usage then return refuse(host, word, context.usage, USAGE) end
  if not ok and not (interrupt.is(failure) or host.signal()) then
    return refuse(host, word, tostring(failure))
  elseif not ok then
    report:skip("all that follows: " .. tostring(failure))
  end
  host.write(report:text())
  if not ok then return host.signal() or INTERRUPTED end
  return #report.findings > 0 and 1 or 0
end

return word_check
