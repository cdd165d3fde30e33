--- stdlib/elastic/HostDiscovery.lua: how many ranks this host has in the job, by a script that
--- prints which hosts may take part: Horovod Elastic's --host_discovery_script.
--
-- The script prints a line for each host: NAME, or NAME:RANKS. The launcher of each host runs it
-- again and again, and looks for its own host alone: nobody starts anything on another host. A
-- script that fails or hangs changes nothing: the last list holds.
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local HostDiscovery = class.extend(nil, "HostDiscovery")

local clock <const> = c.runtime.clock
local process <const> = c.runtime.process

local EVERY <const> = 1 -- seconds from the end of a run of the script to the next
local LONGEST <const> = 20 -- seconds of one run

--- o: {script = path, output = path of a file for what it prints, names = a list of what this host
--- is called, slots = ranks where the script says none, most = ranks, say = function(line)}
function HostDiscovery:init(o)
  for key, value in next, o do self[key] = value end
  self.found, self.due = nil, 0
end

-- Whether a name in the list means this host: also without the domain behind either of them.
local function is_own(self, listed)
  for _, name in ipairs(self.names) do
    local short <const> = not name:find "^[%d.:]+$" and name:match "^[^.]+"
    local same <const> = short and not (listed:find("%.") and name:find("%."))
    if listed == name or same and listed:match "^[^.]+" == short then return true end
  end
  return false
end

--- The name and the number of ranks (nil: none is written) of a line; nil of an empty line, false
--- of one that is neither.
function HostDiscovery.read_line(line)
  local text <const> = line:gsub("#.*$", ""):match "^%s*(.-)%s*$"
  if text == "" then return nil end
  local name, ranks = text:match "^%[([%x:.]+)%]:?(%d*)$"
  if not name then name, ranks = text:match "^([^%s:]+):?(%d*)$" end
  if not name then return false end
  return name, math.tointeger(tonumber(ranks))
end

-- The ranks of this host in what the script has printed, 0 where it is not listed; nil and what is
-- wrong.
local function read(self)
  local text <const>, message = c.io.read_file(self.output)
  if not text then return nil, message end
  local own = 0
  for line in text:gmatch "[^\r\n]+" do
    local name <const>, ranks = HostDiscovery.read_line(line)
    if name == false then return nil, ("must print HOST:RANKS in each line: %s"):format(line) end
    if name and is_own(self, name) then own = ranks or self.slots end
  end
  if own > self.most then return nil, ("%d ranks: at most %d"):format(own, self.most) end
  return own
end

local function complain(self, message)
  if message == self.complaint then return end
  self.complaint = message
  if message then self.say(("%s: %s"):format(self.script, message)) end
end

-- The run of the script is over.
local function finish(self, status)
  self.pid, self.due = nil, clock() + EVERY
  local found, message = nil, ("ended with status %d"):format(status)
  if status == 0 then found, message = read(self) end
  self.found = found or self.found
  complain(self, message)
end

--- How many ranks this host has, 0: it is not listed; nil: not known yet. Waits for nothing.
function HostDiscovery:ranks()
  if self.pid then
    local pid <const>, status = process.wait_any({ self.pid }, 0)
    if pid then
      finish(self, status)
    elseif clock() > self.due then
      process.signal(self.pid, "KILL")
    end
  elseif clock() >= self.due then
    local message
    self.pid, message = process.start({ "sh", "-c", 'exec "$0" >"$1"', self.script, self.output },
      {}, { no_input = true })
    self.due = clock() + (self.pid and LONGEST or EVERY)
    if not self.pid then complain(self, message) end
  end
  return self.found
end

--- Ends what runs.
function HostDiscovery:close()
  if not self.pid then return end
  process.signal(self.pid, "KILL")
  process.wait_any({ self.pid }, 1)
  self.pid = nil
end

return HostDiscovery
