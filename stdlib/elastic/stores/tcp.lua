--- stdlib/elastic/stores/tcp.lua: a store that the first launcher on a host serves to all others.
--
-- The launcher that finds the address to be one of its host, and the port free, starts a process
-- that serves (tcp_server.lua), which ends with it: a job whose store shall outlive each of its
-- hosts has etcd. All launchers, this one too, are clients. A connection that breaks is made again
-- by the next request.
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local PLAIN <const> = { plain = true }
local PORT <const> = 29400 -- as torchrun's
local CONNECT <const>, ANSWER <const> = 2, 5 -- seconds
local START <const> = 10 -- seconds that the server has to begin
local FINISH <const> = 10 -- seconds that the others have to see the job's end
local PAUSE <const> = 0.05

local TcpStore = class.extend(nil, "TcpStore")

--- `pid`: of the server, where this launcher has started it.
function TcpStore:init(host, port, pid)
  self._host, self._port, self._pid = host, port, pid
  self._number, self._changed = 0, false
end

function TcpStore:_disconnect()
  if self._connection then self._connection:close() end
  self._connection, self._watched = nil, nil
end

-- Takes a line that has come: the answer of the request `number`, or the news of a change; false:
-- another program listens there.
function TcpStore:_take(line, number)
  local row <const> = c.io.json_decode(line, PLAIN)
  if type(row) ~= "table" then return false end
  if row.w and row.w == self._watched then self._changed = true end
  return row.n == number and row or nil
end

-- What is wrong with the server, and whether waiting does not help.
function TcpStore:_wrong(what, is_another)
  self._is_another = is_another == true
  return ("the store at %s:%d %s"):format(self._host, self._port, what)
end

-- The same where nobody answers, for the reason at the end of a message.
function TcpStore:_silent(message)
  local why <const> = message:match "([^:]+)$":match "^%s*(.-)$":gsub("^%u", string.lower)
  return self:_wrong(("does not answer (%s): has the launcher on that host begun, and is this its "
    .. "port?"):format(why))
end

-- Sends a request and waits for its answer; nil and a message where there is none.
function TcpStore:_ask(request)
  if not self._connection then
    local connection, message = c.net.connect(self._host, self._port, CONNECT)
    if not connection then return nil, self:_silent(message) end
    self._connection = connection
  end
  self._number = self._number + 1
  request.n = self._number
  local sent, message = self._connection:send(c.io.json_encode(request, PLAIN), ANSWER)
  local deadline <const> = c.runtime.clock() + ANSWER
  while sent do
    local line, why = self._connection:receive(math.max(0, deadline - c.runtime.clock()))
    local answer <const> = line and self:_take(line, self._number)
    if answer then return answer end
    if line == nil then sent, message = nil, why end
    if line and answer == false then
      self:_disconnect()
      return nil, self:_wrong("is another program's: is this the port of a launcher?", true)
    elseif line == false and c.runtime.clock() >= deadline then
      sent, message = nil, ("no answer for %d s"):format(ANSWER)
    end
  end
  self:_disconnect()
  return nil, self:_silent(message)
end

function TcpStore:_call(request)
  local answer, message = self:_ask(request)
  if not answer then return nil, message end
  return answer.a, answer.b
end

--- As MemoryStore's (memory.lua), and so are those that follow: nil and a message where the server
--- does not answer.
function TcpStore:get(key) return self:_call { op = "get", key = key } end

function TcpStore:list(prefix) return self:_call { op = "list", key = prefix } end

function TcpStore:put(key, value, lease)
  return self:_call { op = "put", key = key, value = value, lease = lease }
end

function TcpStore:create(key, value, lease)
  return self:_call { op = "create", key = key, value = value, lease = lease }
end

function TcpStore:replace(key, value, version, lease)
  return self:_call { op = "replace", key = key, value = value, version = version, lease = lease }
end

function TcpStore:remove(key) return self:_call { op = "remove", key = key } end

function TcpStore:lease(seconds) return self:_call { op = "lease", seconds = seconds } end

function TcpStore:keep(lease) return self:_call { op = "keep", lease = lease } end

function TcpStore:drop(lease) return self:_call { op = "drop", lease = lease } end

--- Why a job cannot use this store, however long it waits; nil: it can, or nobody answers.
function TcpStore:refusal(key)
  local value <const>, message = self:get(key)
  return value == nil and self._is_another and message or nil
end

function TcpStore:wait(prefix, seconds)
  if self._watched ~= prefix or not self._connection then
    self._watched, self._changed = prefix, false
    local answer <const> = self:_ask { op = "watch", key = prefix }
    if not answer then c.runtime.sleep(math.min(seconds, PAUSE)) end
    return true
  end
  local line = true
  while line and not self._changed do
    line = self._connection:receive(seconds)
    if line then self:_take(line) end
  end
  while line do -- what more has come
    line = self._connection:receive(0)
    if line then self:_take(line) end
  end
  if line == nil then self:_disconnect() end
  local changed <const> = self._changed or line == nil
  self._changed = false
  return changed
end

--- The server, where this launcher has started it, ends when the others have left it.
function TcpStore:close()
  if self._pid then
    self:_ask { op = "finish", seconds = FINISH }
    local ended <const> = c.runtime.process.wait_any({ self._pid }, FINISH + 1)
    if not ended then
      c.runtime.process.signal(self._pid, "KILL")
      c.runtime.process.wait_any({ self._pid }, 1)
    end
    self._pid = nil
  end
  self:_disconnect()
end

-- Starts the server: its process, nil and a message.
local function start(host, port)
  local program, message = c.runtime.process.executable()
  if not program then return nil, message end
  local code <const> = ("require 'ltrain.elastic.stores.tcp_server'(%q, %d)"):format(host, port)
  local pid, why = c.runtime.process.start { program, "-e", code }
  return pid, why
end

--- The store of a tcp:// URL; nil and a message.
function TcpStore.open(parsed)
  local server <const> = parsed.hosts[1]
  if not server or #parsed.hosts > 1 then return nil, "one server: tcp://HOST:PORT/JOB" end
  local name <const> = next(parsed.parameters)
  if name then return nil, ("unknown parameter %s"):format(name) end
  local port <const> = server.port or PORT
  local free <const> = c.net.serve(server.host, port, 1, 1)
  if not free then return TcpStore(server.host, port) end
  free:close()
  local pid, message = start(server.host, port)
  if not pid then return nil, message end
  local store <const>, deadline = TcpStore(server.host, port, pid), c.runtime.clock() + START
  while store:get "" == nil do
    if c.runtime.clock() > deadline then
      store:close()
      return nil, "the server does not begin"
    end
    c.runtime.sleep(PAUSE)
  end
  return store
end

return TcpStore
