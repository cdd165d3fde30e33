--- stdlib/elastic/stores/tcp_server.lua: the process that the first launcher starts to serve a
--- store to the launchers of all hosts.
--
-- Requests and answers are lines of JSON: {"n": number, "op": "put", "key":, ...} and {"n": number,
-- "a": first result, "b": second one}. A client that watches a prefix gets {"w": prefix} after each
-- change below it, between the answers. Its keys are in memory: they end with it.
local c = require "ltrain.c"
local MemoryStore = require "ltrain.elastic.stores.memory"

local PLAIN <const> = { plain = true }
local LINE <const>, UNREAD <const> = 1 << 26, 1 << 28 -- bytes of a request; of unread answers
local LOOK <const> = 0.1 -- seconds between two looks at what has expired

local requests <const> = {}

function requests.get(store, q) return store:get(q.key) end
function requests.list(store, q) return store:list(q.key) end
function requests.put(store, q) return store:put(q.key, q.value, q.lease) end
function requests.create(store, q) return store:create(q.key, q.value, q.lease) end
function requests.replace(store, q) return store:replace(q.key, q.value, q.version, q.lease) end
function requests.remove(store, q) return store:remove(q.key) end
function requests.lease(store, q) return store:lease(q.seconds) end
function requests.keep(store, q) return store:keep(q.lease) end
function requests.drop(store, q) return store:drop(q.lease) end

local FIELDS <const> = { key = "string", value = "string", lease = "integer", version = "integer",
                         seconds = "number" }

-- Whether a line is a request: what other programs send is not trusted.
local function is_request(q)
  if type(q) ~= "table" or type(q.n) ~= "number" or type(q.op) ~= "string" then return false end
  for name, kind in next, FIELDS do
    local value <const> = q[name]
    local found <const> = kind == "integer" and math.type(value) or type(value)
    if value ~= nil and found ~= kind then return false end
  end
  return true
end

local function encode(value) return c.io.json_encode(value, PLAIN) end

-- Sends the changes since the last call to those who watch them. Watchers of one prefix are
-- together, since there are few prefixes and thousands of them.
local function push(self)
  local revision <const>, keys = self.store:changes(self.revision)
  if revision == self.revision then return end
  self.revision = revision
  for prefix, clients in next, self.watchers do
    local hit = keys == nil
    for _, key in ipairs(keys or {}) do hit = hit or key:sub(1, #prefix) == prefix end
    local line <const> = hit and encode { w = prefix }
    for client in next, hit and clients or {} do self.server:send(client, line) end
  end
end

local function unwatch(self, client)
  local prefix <const> = self.watching[client]
  if prefix then self.watchers[prefix][client] = nil end
  self.watching[client] = nil
end

local function watch(self, client, prefix)
  unwatch(self, client)
  self.watching[client] = prefix
  self.watchers[prefix] = self.watchers[prefix] or {}
  self.watchers[prefix][client] = true
  return true
end

local function answer(self, client, line)
  local q <const> = c.io.json_decode(line, PLAIN)
  if not is_request(q) then return end
  local a, b
  if q.op == "watch" and q.key then
    a = watch(self, client, q.key)
  elseif q.op == "finish" and q.seconds then
    self.finish_at, a = c.runtime.clock() + q.seconds, true
  elseif requests[q.op] then
    local ok, first, second = pcall(requests[q.op], self.store, q)
    if ok then a, b = first, second end -- else a field is missing: the answer is empty
  end
  push(self)
  self.server:send(client, encode { n = q.n, a = a, b = b })
end

-- Whether the launcher that began this wants it to end, and the others have left.
local function is_over(self)
  return c.runtime.interrupted() > 0
    or self.finish_at and (self.clients <= 1 or c.runtime.clock() >= self.finish_at)
end

--- Serves until this process is asked to end; returns at once where the port is taken.
return function(host, port)
  local server, message = c.net.serve(host, port, LINE, UNREAD)
  if not server then return server, message end
  local self <const> = { server = server, store = MemoryStore(), revision = 0, watchers = {},
                         watching = {}, seen = {}, clients = 0 }
  while not is_over(self) do
    local client <const>, line = server:wait(LOOK)
    if client and not self.seen[client] then
      self.seen[client], self.clients = true, self.clients + 1
    end
    if line then
      answer(self, client, line)
    elseif client then
      unwatch(self, client)
      self.seen[client], self.clients = nil, self.clients - 1
    else
      push(self)
    end
  end
  server:close()
  return true
end
