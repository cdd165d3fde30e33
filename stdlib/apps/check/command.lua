--- stdlib/apps/check/command.lua: `ltrain check SCRIPT`: examines a script without training it.
local calls = require "ltrain.apps.check.source.calls"
local check = require "ltrain.apps.check"
local overrides = require "ltrain.trainer.setup.overrides"
local refuse = require "ltrain.cli.refuse"
local run = require "ltrain.cli.run"
local script_loop = require "ltrain.apps.check.script_loop"

local word_check = {}

local USAGE <const>, INTERRUPTED <const> = 2, 130

word_check.declared = run.declared

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

local function examine(context)
  if context.usage then return end
  check.static(context, context.host.globals)
  overrides.take = nil
  if context.fn then check.dynamic(context) end
  report_warnings(context)
end

--- The word's main: returns the exit status.
function word_check.main(word, parsed, host)
  local script, status = script_loop.read(word, parsed, host)
  if not script then return status end
  local context = check.context(script.report, check.source(script.text))
  local ok, failure = script_loop.run(context, word, parsed, host, script.chunk, examine)
  if context.usage then return refuse(host, word, context.usage, USAGE) end
  if not ok and not script_loop.is_interrupt(failure, host) then
    return refuse(host, word, tostring(failure))
  elseif not ok then
    script.report:skip("all that follows: " .. tostring(failure))
  end
  host.write(script.report:text())
  if not ok then return host.signal() or INTERRUPTED end
  return #script.report.findings > 0 and 1 or 0
end

return word_check
