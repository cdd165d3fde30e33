-- spec/trainer/rounds.lua: rounds of ranks whose snapshots outlive them, for specs: what a launcher
-- does, with plain files in the place of its memory files.
--
-- Ranks of one host share its files. Each of two "hosts" of this machine has files of its own, and
-- says so by its variables.
local child = require "spec.cli.child"
local hosts = require "spec.dist.two_hosts.hosts"

local rounds = {}
rounds.__index = rounds

local LTRAIN <const> = hosts.absolute(os.getenv "LTRAIN" or "build/ltrain")
local LIMIT <const> = (os.getenv "LT_SANITIZE" or "") ~= "" and 120 or 30 -- seconds
local SLOTS <const>, FIRST <const> = 8, 20 -- of a host, for two ranks; the descriptor before

local process_id = math.tointeger(tonumber(io.open("/proc/self/stat"):read "n"))
local serial = 0

--- A job with this script; `folder` is its working folder.
function rounds.new(script)
  local self = setmetatable({ folder = child.folder(), round = -1 }, rounds)
  child.write(self.folder .. "/script.lua", script)
  return self
end

function rounds:path(name) return self.folder .. "/" .. name end

--- The file of slot `k` (from 1) of a host (from 0).
function rounds:slot(host, k) return self:path(("slot.%d.%d"):format(host, k)) end

-- The line of a shell that starts a rank: number `rank` of `o.ranks`, on `o.hosts` hosts.
local function line_of(self, o, rank, port)
  local each = o.ranks // o.hosts
  local host, fds, redirections = rank // each, {}, {}
  for k = 1, SLOTS do
    fds[k] = FIRST + k
    redirections[k] = ("%d<>%s"):format(FIRST + k, self:slot(host, k))
  end
  local variables = { "LTRAIN_SNAPSHOT=" .. table.concat(fds, ","),
    "LTRAIN_INCARNATION=" .. self.round, "LOCAL_RANK=" .. rank % each, o.env or "" }
  if o.ranks > 1 then
    variables[#variables + 1] = ("MASTER_ADDR=127.0.0.1 MASTER_PORT=%d WORLD_SIZE=%d RANK=%d "
      .. "LOCAL_WORLD_SIZE=%d GROUP_RANK=%d"):format(port, o.ranks, rank, each, host)
  end
  return ("(timeout -k 1 %d env %s '%s' run script.lua >%d.out 2>&1 %s; echo $? >%d.status) &")
    :format(LIMIT, table.concat(variables, " "), LTRAIN, rank, table.concat(redirections, " "),
      rank)
end

--- Runs the next round to its end. Options: ranks (1), hosts (1), env (a text of assignments).
--- Returns a list of { status =, text = } by rank.
function rounds:run(options)
  local o = { ranks = 1, hosts = 1 }
  for name, value in next, options or {} do o[name] = value end
  self.round, serial = self.round + 1, serial + 1
  local lines = { ("cd '%s'"):format(self.folder) }
  for rank = 0, o.ranks - 1 do
    lines[#lines + 1] = line_of(self, o, rank, 21000 + (process_id * 16 + serial) % 9000)
  end
  lines[#lines + 1] = "wait"
  child.write(self:path "round.sh", table.concat(lines, "\n") .. "\n")
  os.execute(("bash '%s' 2>/dev/null"):format(self:path "round.sh"))
  local results = {}
  for rank = 0, o.ranks - 1 do
    results[rank + 1] = { text = self:read(rank .. ".out"),
      status = math.tointeger(tonumber(self:read(rank .. ".status"))) }
  end
  return results
end

--- Runs the script under `ltrain launch` on so many ranks; `env`: a text of assignments. Returns
--- what was printed, and the exit status.
function rounds:launch(ranks, env)
  os.execute(("cd '%s' && timeout -k 1 %d env %s '%s' launch --nproc_per_node %d script.lua "
    .. ">launch.out 2>&1; echo $? >launch.status"):format(self.folder, 2 * LIMIT, env, LTRAIN,
    ranks))
  return self:read "launch.out", math.tointeger(tonumber(self:read "launch.status"))
end

--- The text of a file in its folder; nil without it.
function rounds:read(name)
  local file <close> = io.open(self:path(name), "rb")
  return file and file:read "a"
end

--- Removes the slots of a host: it is lost.
function rounds:lose(host)
  os.execute(("rm -f '%s'/slot.%d.*"):format(self.folder, host))
end

function rounds:remove() child.remove(self.folder) end
rounds.__close = rounds.remove

return rounds
