--- stdlib/apps/plan/command.lua: `ltrain plan SCRIPT`: what a fit would need of memory on N ranks,
--- by strategy, without training.
local advice = require "ltrain.apps.plan.advice"
local c = require "ltrain.c"
local check = require "ltrain.apps.check"
local class = require "ltrain.core.class"
local measure = require "ltrain.apps.plan.measure"
local overrides = require "ltrain.trainer.setup.overrides"
local refuse = require "ltrain.cli.refuse"
local report = require "ltrain.apps.plan.report"
local run = require "ltrain.cli.run"
local scaling = require "ltrain.apps.plan.scaling"
local script_loop = require "ltrain.apps.check.script_loop"
local sizes = require "ltrain.apps.plan.sizes"
local strategies = require "ltrain.apps.plan.strategies"
local times = require "ltrain.apps.plan.times"

local word_plan = {}

local USAGE <const>, INTERRUPTED <const> = 2, 130

word_plan.declared = run.declared

-- Notes what the first Trainer of the script was made with, before it is placed on this machine.
local function note_options(context)
  local apply = overrides.apply
  function overrides.apply(script)
    context.given = context.given or script or {}
    return apply(script)
  end
  return setmetatable({}, { __close = function() overrides.apply = apply end })
end

-- Ranks of a machine and machines, of the command line, else of the script.
local function count_ranks(context, options)
  local given = context.given or {}
  local per_node = options.devices or math.tointeger(tonumber(given.devices)) or 1
  local nodes = options.nodes or math.tointeger(tonumber(given.num_nodes)) or 1
  return math.max(per_node, 1) * nodes, math.max(per_node, 1)
end

-- The rows of the table.
local function add_rows(found, rows, base, hardware)
  local refused
  for _, row in ipairs(rows) do
    local measured, message = measure.bytes(row, base)
    if not measured then
      if not row.is_optional then return nil, message end
      refused = refused or message
    else
      measured.name, measured.stage, measured.row = row.name, row.stage, row
      base.on_cpu, base.why = measured.device == "cpu", measured.why
      found.rows[#found.rows + 1] = measured
    end
  end
  if #found.rows == 0 then return nil, refused end
  found.device, found.why = found.rows[1].device, base.why
  for _, one in ipairs(hardware and found.rows or {}) do
    local ok, message = measure.add_times(one, one.row, base, hardware)
    if not ok then return nil, message end
  end
  return true
end

local function plan(context, options, hardware)
  local ranks, per_node = count_ranks(context, options)
  local base = { trainer = context.trainer, module = context.module,
    arguments = context.arguments, ranks = ranks, per_node = per_node }
  local own = base.trainer.strategy
  local found = { script = context.report.script, ranks = ranks, per_node = per_node,
    class_name = class.of(base.module) and class.of(base.module).__name or "module",
    limit = options.memory and sizes.bytes(options.memory), rows = {}, hardware = hardware }
  local list = options.simulate and scaling.parse(options.simulate)
  local wrong = hardware and scaling.wrong(list or { ranks }, per_node, hardware)
  if wrong then
    context.usage = wrong
    return nil
  end
  local rows = strategies.rows(own, list and math.max(table.unpack(list)) or ranks, per_node,
    options.strategy, list ~= nil)
  local ok, message
  if list then
    found.scaling, message = scaling.run(list, rows, base, hardware)
    return found.scaling and found, message
  end
  ok, message = add_rows(found, rows, base, hardware)
  if not ok then return nil, message end
  advice.add(found, base, own)
  return found
end

local function examine(options, hardware)
  return function(context)
    overrides.take = nil
    if context.usage then return end
    if context.fn ~= "fit" then
      if #context.report.findings == 0 then
        context.report:error("plan", 0, context.fn
          and ("nothing to plan: the first loop of the script is %s"):format(context.fn)
          or "nothing to plan: the script calls no trainer:fit, and returns no module",
          "call trainer:fit(module, data), or return the module or {model =, data =, trainer =}")
      end
      return
    end
    local found, message = plan(context, options, hardware)
    context.found = found
    if message then context.report:raised("fit", message) end
  end
end

-- What is wrong with the options, which the rows of the command cannot say.
local function wrong_option(options)
  if options.memory and not sizes.bytes(options.memory) then
    return ("--memory: must be a size like 80GB or 512MiB: got %s"):format(options.memory)
  elseif options.simulate and not scaling.parse(options.simulate) then
    return ("--simulate: must be numbers of ranks like 8..4096 or 8,24: got %s"):format(
      options.simulate)
  end
  return times.wrong(options) or strategies.wrong(options.strategy)
end

-- How many ranks a machine may have, as far as the command line says so.
local function counts_of(options)
  local counts = options.simulate and scaling.parse(options.simulate) or { options.devices or 1 }
  for i, ranks in ipairs(counts) do counts[i] = math.min(ranks, options.devices or ranks) end
  return counts
end

--- The word's main: returns the exit status.
function word_plan.main(word, parsed, host)
  local wrong = wrong_option(parsed.options)
  if wrong then return refuse(host, word, wrong, USAGE) end
  local script, status = script_loop.read(word, parsed, host)
  if not script then return status end
  local hardware = times.prepare(parsed.options, counts_of(parsed.options))
  local context = { report = script.report, source = check.source(script.text) }
  local _ <close> = note_options(context)
  local ok, failure = script_loop.run(context, word, parsed, host, script.chunk,
    examine(parsed.options, hardware))
  if context.usage then return refuse(host, word, context.usage, USAGE) end
  if not ok then
    if not script_loop.is_interrupt(failure, host) then
      return refuse(host, word, tostring(failure))
    end
    return host.signal() or INTERRUPTED
  end
  if not context.found then
    host.write(script.report:text())
    return 1
  end
  host.write(parsed.options.json
    and c.io.json_encode(report.values(context.found), { plain = true }) .. "\n"
    or report.text(context.found))
  return 0
end

return word_plan
