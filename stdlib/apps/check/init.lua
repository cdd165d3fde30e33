--- stdlib/apps/check/init.lua: examines a script or a module without training it.
--
-- The checks are the files of stdlib/apps/check/checks, in this order. Each returns a table of
-- functions by the stage at which they are called with the context, the last ones with the state of
-- the run:
--   source     the tree of the script (context.source), after the script was loaded
--   options    the Trainer is there
--   at_start   optimizers are made              on_data   loaders are there
--   before     a batch of two samples waits: experiments with its weights as they are
--   begins     its step begins
--   after      its step has been made
--   validated  a batch of validation has been   at_end    validation has ended
-- and the name that its findings have.
local Report = require "ltrain.apps.check.Report"
local dry_run = require "ltrain.apps.check.dry_run"
local parse = require "ltrain.apps.check.source.parse"
local visit = require "ltrain.apps.check.source.visit"

local check = {}

local CHECKS <const> = {
  "undefined_names", "library_name", "rank_collectives", "unused_options", "zero_based_index",
  "tensor_equality", "string_misuse", "options", "optimizer", "layer_shapes", "training_data",
  "data_overlap", "validation", "retained_graphs", "activations", "layer_pairs", "sample_leak",
  "causality", "unused_input", "loss", "target_range", "targets", "missing_gradients",
  "step_size", "training_step", "zero_grad", "learnability", "initial_weights", "monitor",
  "lr_schedule",
}

check.Report = Report

local function load_checks()
  local list = {}
  for i, name in ipairs(CHECKS) do
    list[i] = require("ltrain.apps.check.checks." .. name)
    list[i].name = name
  end
  return list
end

-- The line of the first assignment to a field of this name.
local function line_of_field(tree, name)
  local line
  visit(tree, function(node)
    if line or node.kind ~= "assign" then return line == nil end
    for _, target in ipairs(node.targets) do
      if target.kind == "index" and target.key.value == name then line = target.line end
    end
  end)
  return line
end

--- What checks know of a script: {text =, tree =, vars =, line_of_field =}.
function check.source(text)
  local tree, vars = parse(text)
  return { text = text, tree = tree, vars = vars,
    line_of_field = function(name) return line_of_field(tree, name) end }
end

--- A context: `report`, and `source` where there is a script's text.
function check.context(report, source)
  return { report = report, source = source, checks = load_checks(),
    is_broken = function(number) return number ~= number or math.abs(number) == math.huge end }
end

--- The checks of the source; after the script has been run, for it may have made globals.
function check.static(context, globals)
  context.globals = globals
  for _, one in ipairs(context.checks) do
    if one.source then
      local ok, message = pcall(one.source, context)
      if not ok then context.report:skip(("%s: %s"):format(one.name, message)) end
    end
  end
end

--- The dry run of `fn` of context.trainer with context.module and context.arguments, with its
--- checks.
function check.dynamic(context) dry_run.start(context) end

return check
