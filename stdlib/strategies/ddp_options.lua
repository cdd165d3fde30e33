--- stdlib/strategies/ddp_options.lua: options of DDP: its own and those of Lightning.
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local rank_options = require "ltrain.strategies.rank_options"

local ddp_options = {}

local WHERE <const> = "strategies.DDP"

-- A row that refuses every value.
local function refused(why)
  return { check = function() return "is not an option here: " .. why end,
    doc = "not an option here: " .. why }
end

local function check_hook(value)
  if type(value) == "string" and value ~= "bf16" then
    return ("must be a function or 'bf16': got '%s'"):format(value)
  end
end

local OPTIONS <const> = rank_options.rows {
  ddp_comm_hook = { type = "function|string", check = check_hook,
    doc = "function that returns the sum of all ranks' buckets, instead of all_reduce; or 'bf16' "
      .. "to send them in bf16" },
  find_unused_parameters = { type = "boolean",
    doc = "never needed: unused parameters are always detected" },
  static_graph = { type = "boolean", doc = "never needed: the graph may change from step to step" },
  gradient_as_bucket_view = { type = "boolean", doc = "never needed" },
  precision_plugin = { type = "object|table|string|integer",
    doc = "Lightning's name for precision" },
  parallel_devices = refused "write devices = N in the Trainer",
  ddp_comm_state = refused "a Lua function has its state in its upvalues",
  ddp_comm_wrapper = refused "call the hook from a function of your own",
  model_averaging_period = refused "write lt.strategies.LocalSGD{period = k}",
}

--- The rows, for the page of strategies.
ddp_options.rows = OPTIONS

-- Options that are accepted and have no effect, and why.
local NOTES <const> = {
  find_unused_parameters = "unused parameters are always detected",
  static_graph = "a dynamic graph costs nothing",
  gradient_as_bucket_view = "buckets and gradients are separate",
}

--- Returns the checked options, and a list of notes to report.
function ddp_options.check(options)
  local o, notes = config.check(options, OPTIONS, WHERE), {}
  for _, name in ipairs { "find_unused_parameters", "static_graph", "gradient_as_bucket_view" } do
    if o[name] ~= nil then
      notes[#notes + 1] = ("%s = %s has no effect: %s"):format(name, o[name], NOTES[name])
    end
  end
  if o.precision_plugin ~= nil then
    if o.precision ~= nil then
      errors.blame("%s: precision and precision_plugin are one option: give one", WHERE)
    end
    o.precision = o.precision_plugin
  end
  return o, notes
end

return ddp_options
