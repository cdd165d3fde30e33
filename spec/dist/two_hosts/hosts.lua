-- spec/dist/two_hosts/hosts.lua: two hosts on this machine and the link between them, for specs
-- (hosts.sh makes them), and how mpirun starts ranks there.
local child = require "spec.cli.child"
local namespaces = require "spec.dist.namespaces"

local process = require("ltrain.c").runtime.process

local hosts = {}
hosts.__index = hosts

local SCRIPT <const> = "spec/dist/two_hosts/hosts.sh"
local LIMIT <const> = 120 -- seconds after which they are taken down, whatever happens

--- The same path from any folder.
function hosts.absolute(path)
  local pipe <close> = assert(io.popen(("realpath -s '%s'"):format(path)))
  return pipe:read "l"
end

local TOOL <const> = hosts.absolute(SCRIPT)
local LTRAIN <const> = hosts.absolute(os.getenv("LTRAIN") or arg[-1])

--- Why there can be no two hosts here, or nil.
function hosts.missing() return namespaces.missing {} end

function hosts:_tool(verb, ...)
  local status, text = process.capture({ TOOL, verb, self.folder, ... }, 20)
  assert(status == 0, text)
end

--- Makes them.
function hosts.up()
  local self = setmetatable({ folder = child.folder() }, hosts)
  local status, text = process.capture({ "env", "LIMIT=" .. LIMIT, TOOL, "up", self.folder }, 20)
  if status ~= 0 then
    child.remove(self.folder)
    error(text, 2)
  end
  return self
end

--- Frames no longer arrive: those from one host, or all; then they do again.
function hosts:cut(from) self:_tool("cut", from) end
function hosts:heal() self:_tool "heal" end

--- Ends what runs on them and removes them.
function hosts:down()
  self:_tool "down"
  child.remove(self.folder)
end
hosts.__close = hosts.down

-- How mpirun gets to the other host, and which way data and its own words go.
function hosts:_ways()
  return ("--mca plm_rsh_agent %s/agent --mca btl_tcp_if_include 10.77.0.0/24 "
    .. "--mca oob_tcp_if_include 10.77.0.0/24"):format(self.folder)
end

--- The words that run a script, which comes behind them, as `count` ranks on each host: started on
--- lta by `ltrain run --launcher mpi`, or by mpirun. The agent hands on their environment.
function hosts:ltrain(count)
  return ("%s on %s lta %s run --launcher mpi --devices %d --num_nodes 2 --hosts lta,ltb "
    .. "--launcher_args '%s'"):format(TOOL, self.folder, LTRAIN, count, self:_ways())
end

function hosts:mpirun(count)
  return ("%s on %s lta mpirun -q -n %d -H lta:%d,ltb:%d %s %s run"):format(TOOL, self.folder,
    2 * count, count, count, self:_ways(), LTRAIN)
end

--- The words before a command on a host.
function hosts:on(host) return ("%s on %s %s"):format(TOOL, self.folder, host) end

--- The words of a command on lta, as a list.
function hosts:on_lta(...) return { TOOL, "on", self.folder, "lta", ... } end

--- The binary.
hosts.binary = LTRAIN

return hosts
