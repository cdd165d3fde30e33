-- stdlib/core/ClusterEnvironment.lua: the base class of cluster environments: what a launcher sets
-- for its processes.
--
-- The base is a single process without a launcher. A subclass reads only the environment variables
-- of its launcher: an installed library, or a shell in a queue, is not a launch.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"

local ClusterEnvironment = class.extend(nil, "ClusterEnvironment")

ClusterEnvironment.extend = class.extend

--- The communication backend that connects the ranks ("mpi", "ucx", or the name of a registered
--- one); nil if none can. Over "ucx" they meet at main_address() and main_port().
ClusterEnvironment.comm = nil
--- How ranks are started, for messages: "mpirun -n %d ltrain run ...".
ClusterEnvironment.starts = "mpirun -n %d ltrain run"

--- The exit status of ranks that a launcher asked to stop between two batches (SIGUSR1); nil: 138.
ClusterEnvironment.stop_status = nil

local OPTIONS <const> = {
  variables = { type = "table", doc = "used instead of the environment variables of the process" },
}

--- Environment{variables = {RANK = "0"}}: for tests; by default those of the process.
function ClusterEnvironment:init(options)
  self.variables = config.check(options, OPTIONS, getmetatable(self).__name).variables
end

--- Returns the value of a variable; nil if it is not set or empty.
function ClusterEnvironment:variable(name)
  local text
  if self.variables then text = self.variables[name] else text = c.runtime.getenv(name) end
  if text == nil or text == "" then return nil end
  return tostring(text)
end

--- Returns the value of the first of the variables that is set to an integer; or nil.
function ClusterEnvironment:integer(...)
  for _, name in ipairs { ... } do
    local text = self:variable(name)
    local number = text and math.tointeger(tonumber(text))
    if number then return number end
  end
end

--- Returns the variable by which this launcher is detected ("OMPI_COMM_WORLD_SIZE=4"); or nil, and
--- optionally a variable that does not indicate a launch.
function ClusterEnvironment:detect() return nil end

--- Returns the number of ranks.
function ClusterEnvironment:world_size() return 1 end
--- Returns the rank of this process, from 0.
function ClusterEnvironment:global_rank() return 0 end
--- Returns the number of this process on its machine, from 0.
function ClusterEnvironment:local_rank() return 0 end
--- Returns the number of this machine in the job, from 0; nil if unknown.
function ClusterEnvironment:node_rank() return 0 end
--- Returns the number of machines of the job; nil if unknown.
function ClusterEnvironment:num_nodes() return nil end

--- Returns the address of the machine of rank 0; nil if unknown.
function ClusterEnvironment:main_address() return self:variable "MASTER_ADDR" or "127.0.0.1" end

--- Returns a free port on that machine; nil if unknown. A second result makes it a range: rank 0
--- takes the first port that is free.
function ClusterEnvironment:main_port() return self:integer "MASTER_PORT" end

--- Returns a text that only the ranks of this job have, which keeps it apart from others that meet
--- at the same port; nil: none.
function ClusterEnvironment:token() return self:variable "LTRAIN_TOKEN" end

--- Returns how often the ranks of this job have been started again: 0 at first.
function ClusterEnvironment:incarnation() return 0 end

--- Returns why they were, as a text; "" at first.
function ClusterEnvironment:reason() return "" end

--- Returns the addresses of the launcher, "10.0.0.1,10.1.0.1": rank 0 of a job on several machines
--- listens on their networks; nil if unknown: all networks.
function ClusterEnvironment:network() return nil end

--- Returns a message if the ranks cannot be connected, else nil.
function ClusterEnvironment:refusal()
  if self:world_size() == 1 or self.comm then return nil end
  local size = self.size_is_known ~= false and self:world_size()
  return ("%s ranks were started, and nothing says how they are connected: start them with %s "
    .. "or srun --mpi=pmix, set MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, or give "
    .. "lt.clusters.register an environment with a comm"):format(size or "several",
    (self.starts:gsub("%%d", size or "N")))
end

--- Returns a message if the Trainer's `devices` and `num_nodes` do not match this launch, else nil.
function ClusterEnvironment:validate(devices, num_nodes)
  local size, count = self:world_size(), math.tointeger(tonumber(devices or ""))
  num_nodes = num_nodes or 1
  if count and count > 0 and count * num_nodes ~= size then
    return ("devices x num_nodes = %d x %d = %d, but %d %s started: %s, or devices = 'auto'")
      :format(count, num_nodes, count * num_nodes, size, size == 1 and "rank was" or "ranks were",
        self.starts:format(count * num_nodes))
  end
  local nodes = self:num_nodes()
  if num_nodes > 1 and nodes and nodes ~= num_nodes then
    return ("num_nodes = %d, but the ranks were started on %d %s"):format(num_nodes, nodes,
      nodes == 1 and "machine" or "machines")
  end
end

return ClusterEnvironment
