--- stdlib/strategies/ddp_options.lua: options of DDP: its own and those of Lightning.
local errors = require "ltrain.core.errors"
local foreign_options = require "ltrain.strategies.foreign_options"
local hooks = require "ltrain.dist.hooks.registry"
local rank_options = require "ltrain.strategies.rank_options"

local ddp_options = {}

local WHERE <const> = "strategies.DDP"

local refused, unneeded = foreign_options.refused, foreign_options.unneeded

-- Of a strategy that sends no whole gradients.
local function check_plain_hook(value)
  if type(value) == "string" and value ~= "bf16" then
    return ("must be a function or 'bf16' here: got '%s'; strategy = 'ddp' takes other hooks")
      :format(value)
  end
end

local OPTIONS <const> = rank_options.rows {
  ddp_comm_hook = { type = "function|string|object", check = hooks.check,
    doc = "function that returns the sum of all ranks' buckets, instead of all_reduce; or a hook "
      .. "of lt.dist.hooks, or its name: 'fp16', 'bf16', 'powerSGD', 'topk', 'random_k', 'int8', "
      .. "'sign'" },
  find_unused_parameters = unneeded("boolean", "unused parameters are always detected"),
  static_graph = unneeded("boolean", "a dynamic graph costs nothing"),
  gradient_as_bucket_view = unneeded("boolean", "buckets and gradients are separate"),
  precision_plugin = { type = "object|table|string|integer",
    doc = "Lightning's name for precision" },
  parallel_devices = refused "write devices = N in the Trainer",
  ddp_comm_state = refused("a hook of lt.dist.hooks has its options and its state: write "
    .. "ddp_comm_hook = lt.dist.hooks.powerSGD{...}"),
  ddp_comm_wrapper = refused "write ddp_comm_hook = lt.dist.hooks.fp16_compress_wrapper(hook)",
  model_averaging_period = refused "write lt.strategies.LocalSGD{period = k}",
}

--- The rows, for the page of strategies.
ddp_options.rows = OPTIONS

--- The row of ddp_comm_hook of strategies whose ranks reduce parts of gradients.
ddp_options.plain_hook = { type = "function|string", check = check_plain_hook,
  doc = "function that returns the sum of all ranks' buckets, instead of all_reduce; or 'bf16' "
    .. "to send them in bf16" }

--- Rows for a subclass: its own and the above.
function ddp_options.with(own)
  local rows = {}
  for name, row in next, OPTIONS do rows[name] = row end
  for name, row in next, own do rows[name] = row end
  return rows
end

--- Returns the checked options, and a list of notes to report. `rows`, `where`: of a subclass.
function ddp_options.check(options, rows, where)
  where = where or WHERE
  local o, notes = foreign_options.check(options, rows or OPTIONS, where)
  if o.precision_plugin ~= nil then
    if o.precision ~= nil then
      errors.blame("%s: precision and precision_plugin are one option: give one", where)
    end
    o.precision = o.precision_plugin
  end
  return o, notes
end

return ddp_options
