--- stdlib/strategies/rank_options.lua: options of all strategies of several ranks.
local Strategy = require "ltrain.strategies.Strategy"
local config = require "ltrain.core.config"
local duration = require "ltrain.core.duration"

local rank_options = {}

-- Values of PyTorch and Lightning, and what to write here instead.
local BACKENDS <const> = {
  gloo = "ranks on one machine use shm, others mpi or ucx, and GPUs nccl: remove it",
}
local METHODS <const> = {
  spawn = "is for CUDA, which a forked process cannot use: write 'fork'",
  forkserver = "ranks are forks of the script's process: write 'fork'",
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

local ROWS <const> = {
  timeout = duration.in_seconds("time after which a rank is late, or lost without a heartbeat (3 "
    .. "seconds at least); by default LT_TIMEOUT or 60 seconds", { min = 0.1 }),
  fork_with_threads = { type = "boolean",
    doc = "fork although the process has threads that ltrain did not start" },
  bucket_cap_mb = { type = "number", default = 25, above = 0,
    doc = "MiB of gradients or parameters per message" },
  broadcast_buffers = { type = "boolean", default = true,
    doc = "broadcast rank 0's buffers (running averages) before evaluation and saving" },
  state_dict_type = { type = "string", default = "full", choices = { "full", "sharded" },
    doc = "checkpoints: 'full', one file that rank 0 writes, or 'sharded', a folder into which "
      .. "each rank writes its part" },
  process_group_backend = { type = "string", check = one_of({ "shm", "mpi", "ucx", "nccl" },
    BACKENDS),
    doc = "the communication backend that ranks must use, else an error: 'shm' (forked), 'mpi' "
      .. "(mpirun, srun) or 'ucx' (torchrun, Kubernetes, variables set by hand) between hosts; "
      .. "'nccl': that of GPUs, which is used where it is found" },
  start_method = { type = "string", check = one_of({ "fork", "popen" }, METHODS),
    doc = "'fork': ranks are forked when fit starts" },
}

-- Options that become fields of the object.
local KEPT <const> = { "bucket_cap_mb", "broadcast_buffers", "process_group_backend",
  "state_dict_type" }

--- Rows for config.check: a strategy's own, the above and those of the parts.
function rank_options.rows(own)
  local rows = Strategy.rows(ROWS)
  for name, row in next, own or {} do rows[name] = row end
  return rows
end

--- Checked options of the class of `strategy`, which declares its rows in `options`.
function rank_options.check(strategy, options)
  local class = getmetatable(strategy)
  return config.check(options, class.options, "strategies." .. class.__name)
end

--- Sets these options in the object; adds notes on those without effect to strategy.notes.
function rank_options.take(strategy, o)
  strategy.checked_options = o
  strategy:use_parts(o)
  for _, name in ipairs(KEPT) do strategy[name] = o[name] end
  strategy.timeout, strategy.fork_with_threads = o.timeout, o.fork_with_threads
  strategy.own_timeout, strategy.forks_with_threads = o.timeout, o.fork_with_threads
  if o.start_method ~= "popen" then return end
  strategy.notes = strategy.notes or {}
  table.insert(strategy.notes, "start_method = 'popen': ranks are forked when fit starts; the "
    .. "script is not run again")
end

return rank_options
