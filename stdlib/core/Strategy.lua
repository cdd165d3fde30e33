-- stdlib/core/Strategy.lua: how the processes of a run work together. The base is one process, to
-- which every question has the simple answer; subclasses override all of it.

local class = require "ltrain.core.class"

local Strategy = class.extend(nil, "Strategy")

Strategy.extend = class.extend

-- Who this process is.
Strategy.world_size = 1
Strategy.global_rank = 0
Strategy.local_rank = 0
Strategy.node_rank = 0
Strategy.is_global_zero = true
--- The device that modules and batches go to.
Strategy.root_device = "cpu"

function Strategy:init() end

--- How many ranks the Trainer's options `o` mean.
function Strategy:configure(ranks, o) end

--- Runs body() in every rank of the run `what` ("fit", ...), and returns what it returns. `folder`:
--- where reports of failures go, nil when there is none yet.
function Strategy:launch(what, body, folder) return body() end

--- Before anything of a run: processes, connections.
function Strategy:setup_environment(trainer) end

--- Runs prepare(), which makes files that every rank reads: on one rank a machine.
function Strategy:prepare_data(prepare) prepare() end

--- The module is there and loaded: put it where it runs.
function Strategy:setup(trainer, module)
  module:to(self.root_device)
end

--- Adds the gradients of `parameters` over all ranks. `weight`: this rank's samples over the
--- nominal batch; `flags`: numbers. Returns the sums of both.
function Strategy:reduce_gradients(parameters, weight, flags) return weight, flags end

--- Makes the buffers of all ranks those of rank 0.
function Strategy:sync_buffers(module) end

--- The run is over, also after an error.
function Strategy:teardown() end

--- Combine a number or tensor over all processes: "mean", "sum", "min" or "max".
function Strategy:reduce(value, how) return value end

--- The value that process `source` has.
function Strategy:broadcast(value, source) return value end

--- The list of what each process has, in order of rank.
function Strategy:all_gather(value) return { value } end

--- Wait for all processes. `name` stands in errors.
function Strategy:barrier(name) end

--- Whether the condition holds on all processes (or on any, with all = false).
function Strategy:reduce_boolean(condition, all) return condition end

return Strategy
