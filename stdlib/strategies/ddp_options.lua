--- stdlib/strategies/ddp_options.lua: options of DDP: ours, and those that Lightning's has.
local Strategy = require "ltrain.strategies.Strategy"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local ddp_options = {}

local WHERE <const> = "strategies.DDP"

-- Values that elsewhere mean something, and what is so here.
local BACKENDS <const> = {
  gloo = "ranks of one machine talk over shm, others over mpi: leave it out",
  nccl = "comes with GPUs: leave it out",
}
local METHODS <const> = {
  spawn = "comes with CUDA, where a forked process cannot use the devices: write 'fork'",
  forkserver = "ranks are forks of the script, with all that it has built: write 'fork'",
}

local function one_of(words, others)
  return function(value)
    for _, word in ipairs(words) do
      if value == word then return nil end
    end
    return ("= '%s': %s"):format(value, others[value]
      or "must be '" .. table.concat(words, "' or '") .. "'")
  end
end

-- A row that no value fits.
local function refused(why)
  return { check = function() return "is not an option here: " .. why end,
    doc = "not an option here: " .. why }
end

local function check_hook(value)
  if type(value) == "string" and value ~= "bf16" then
    return ("must be a function or 'bf16': got '%s'"):format(value)
  end
end

local OPTIONS <const> = Strategy.rows {
  timeout = { type = "number", min = 0.1,
    doc = "seconds after which a rank counts as late, or lost (3 at least); without it LT_TIMEOUT "
      .. "or 60" },
  fork_with_threads = { type = "boolean",
    doc = "fork although the process has threads that ltrain did not start" },
  bucket_cap_mb = { type = "number", default = 25, above = 0,
    doc = "MiB of gradients that are reduced in one message" },
  broadcast_buffers = { type = "boolean", default = true,
    doc = "give all ranks rank 0's buffers (batch norm's figures) before evaluation and saving" },
  ddp_comm_hook = { type = "function|string", check = check_hook,
    doc = "reduces a bucket in place of all_reduce: the sum of all ranks' buckets; or 'bf16': they "
      .. "travel as bf16" },
  process_group_backend = { type = "string", check = one_of({ "shm", "mpi" }, BACKENDS),
    doc = "the comm that ranks must talk over: 'shm' (forked) or 'mpi' (mpirun, srun)" },
  start_method = { type = "string", check = one_of({ "fork", "popen" }, METHODS),
    doc = "'fork': ranks are forked where fit begins" },
  find_unused_parameters = { type = "boolean", doc = "never needed: unused parameters are known" },
  static_graph = { type = "boolean", doc = "never needed: graphs may change from step to step" },
  gradient_as_bucket_view = { type = "boolean", doc = "never needed: buckets are the reducer's" },
  precision_plugin = { type = "object|table|string|integer",
    doc = "Lightning's word for precision" },
  parallel_devices = refused "write devices = N in the Trainer",
  ddp_comm_state = refused "a Lua function has its state in its upvalues",
  ddp_comm_wrapper = refused "call the hook from a function of your own",
  model_averaging_period = refused "gradients are summed at each optimizer step",
}

--- The rows, for the page of strategies.
ddp_options.rows = OPTIONS

--- Options that the object has as fields of the same name.
ddp_options.kept = { "timeout", "fork_with_threads", "bucket_cap_mb", "broadcast_buffers",
  "process_group_backend" }

-- Options that are taken and mean nothing, and why.
local NOTES <const> = {
  find_unused_parameters = "a parameter that no rank used is found and keeps no gradient",
  static_graph = "a graph that changes costs nothing",
  gradient_as_bucket_view = "buckets and gradients are separate",
}

--- The checked options, and a list of what is to be told.
function ddp_options.check(options)
  local o, notes = config.check(options, OPTIONS, WHERE), {}
  for _, name in ipairs { "find_unused_parameters", "static_graph", "gradient_as_bucket_view" } do
    if o[name] ~= nil then
      notes[#notes + 1] = ("%s = %s changes nothing: %s"):format(name, o[name], NOTES[name])
    end
  end
  if o.start_method == "popen" then
    notes[#notes + 1] = "start_method = 'popen': ranks are forked where fit begins; the script is "
      .. "not run again"
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
