--- stdlib/clusters/join.lua: lt.clusters.join, which connects the ranks of a launch.
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local environments = require "ltrain.clusters.environments"
local restarts = require "ltrain.core.restarts"

local OPTIONS <const> = {
  devices = { doc = "ranks on this machine, as in the Trainer; must agree with the launch" },
  num_nodes = { type = "integer", doc = "number of machines, likewise" },
  owns_process = { type = "boolean", default = false,
    doc = "whether failing ranks may end the process" },
}

-- "host:port", "host:first-last" for comms that meet at an address; "file:///path" as it is: rank 0
-- writes a port of its own there.
local function address_of(environment)
  local address, port, last = environment:main_address(), environment:main_port()
  if not address or not port or address:find("^file:") then return address end
  return ("%s:%d%s"):format(address, port, last and ("-%d"):format(last) or "")
end

--- Connects this process with the other ranks of an environment (by default the current one), once.
--- Returns whether it is now one of several ranks; nil and a message if that is not possible, and
--- whether that came up while connecting: other ranks, elsewhere, may have another reason.
return function(environment, options)
  environment = environment or environments.current()
  local o = config.check(options, OPTIONS, "clusters.join")
  local wrong = environments.check(environment, o.devices, o.num_nodes)
  if wrong then return nil, wrong end
  restarts.incarnation, restarts.reason = environment:incarnation(), environment:reason()
  if environment:world_size() == 1 then return false end
  if c.dist.size() > 1 then return true end
  local ok, message = c.dist.join {
    comm = environment.comm, rank = environment:global_rank(), size = environment:world_size(),
    local_rank = environment:local_rank(), main_address = address_of(environment),
    token = environment:token(),
    network = environment:network(), owns_process = o.owns_process,
  }
  if not ok then return nil, ("%s: %s"):format(environment.name or "cluster", message), true end
  return true
end
