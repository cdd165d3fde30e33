--- stdlib/elastic/stores/etcd.lua: etcd as a store, over the JSON gateway of its servers (etcd 3.4
--- and later).
--
-- Keys and values travel in base64, 64-bit numbers as strings. The version of a key is the revision
-- at which it was changed. A server that does not answer, or has no leader, makes the next one take
-- its place; a change that was asked of it may have been made.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local etcd_errors = require "ltrain.elastic.stores.etcd_errors"

local PLAIN <const> = { plain = true }
local PORT <const> = 2379
local CONNECT <const>, ANSWER <const> = 2, 5 -- seconds
local PAUSE <const> = 0.1 -- seconds after a watch that was cut off
local UNAVAILABLE <const>, NOT_FOUND <const> = etcd_errors.UNAVAILABLE, etcd_errors.NOT_FOUND
local UNAUTHENTICATED <const>, REFUSED <const> = etcd_errors.UNAUTHENTICATED, etcd_errors.REFUSED

local EtcdStore = class.extend(nil, "EtcdStore")

--- `servers`: a list of URLs; options: ca, cert, key (files), user, password.
function EtcdStore:init(servers, options)
  self._servers, self._options, self._current = servers, options, 1
end

local function encode(value) return c.io.json_encode(value, PLAIN) end

local function number(text) return math.tointeger(tonumber(text)) end

-- The end of the range of keys that begin with a prefix.
local function range_end(prefix)
  local kept <const> = prefix:gsub("\xff+$", "")
  if kept == "" then return "\0" end -- all keys
  return kept:sub(1, -2) .. string.char(kept:byte(-1) + 1)
end

function EtcdStore:_client()
  if self._http then return self._http end
  local o <const> = self._options
  local http, message = c.net.http { ca = o.ca, cert = o.cert, key = o.key,
                                     connect_seconds = CONNECT }
  self._http = http
  return http, message
end

function EtcdStore:_fields()
  return { "Content-Type: application/json",
           self._token and "Authorization: " .. self._token or nil }
end

-- The answer of the current server as a table; nil, what is wrong and its code (etcd_errors.lua).
function EtcdStore:_post(path, text)
  local http, message = self:_client()
  if not http then return nil, message end
  local url <const> = self._servers[self._current] .. path
  local o <const> = self._options
  local status, answer, result = http:post(url, text, self:_fields(), ANSWER)
  if not status then return nil, etcd_errors.of_transfer(o, result, answer, ANSWER) end
  local decoded = c.io.json_decode(answer, PLAIN)
  decoded = type(decoded) == "table" and decoded or nil
  if status == 200 and decoded then return decoded end
  return nil, etcd_errors.of_answer(o, status, decoded, answer)
end

-- Gets a token for the user.
function EtcdStore:_log_in()
  self._token = nil
  local answer, message, code = self:_post("/v3/auth/authenticate",
    encode { name = self._options.user, password = self._options.password or "" })
  if not answer then return nil, message, code end
  self._token = answer.token
  return true
end

-- A request of the current server, with a new token where the former one has expired.
function EtcdStore:_ask(path, text)
  if self._options.user and not self._token then
    local done, message, code = self:_log_in()
    if not done then return nil, message, code end
  end
  local answer, message, code = self:_post(path, text)
  local expired <const> = self._token and (code == UNAUTHENTICATED
    or not answer and message:find "invalid auth token")
  if not expired then return answer, message, code end
  local done, why, of = self:_log_in()
  if not done then return nil, why, of end
  return self:_post(path, text)
end

-- "etcd at h1:2379 and h2:2379 does not answer ...; at h3:2379 ...": by what has happened.
local function sentence(places, whats)
  local parts <const>, at = {}, {}
  for k, what in ipairs(whats) do
    if not at[what] then
      at[what] = {}
      parts[#parts + 1] = what
    end
    table.insert(at[what], places[k])
  end
  for k, what in ipairs(parts) do
    parts[k] = ("at %s %s"):format(table.concat(at[what], " and "), what)
  end
  return "etcd " .. table.concat(parts, "; ")
end

-- A request of one server after the other, until one answers; nil, a message and a code.
function EtcdStore:_call(path, body)
  local text <const>, places, whats, may_answer = encode(body), {}, {}, false
  for k = 1, #self._servers do
    local answer, what, code = self:_ask(path, text)
    if answer then return answer end
    places[k], whats[k] = self._servers[self._current]:match "//(.*)$", what
    if code ~= UNAVAILABLE and code ~= REFUSED then
      return nil, sentence({ places[k] }, { what }), code
    end
    may_answer = may_answer or code == UNAVAILABLE
    self._current = self._current % #self._servers + 1
    self._token = nil
  end
  return nil, sentence(places, whats), may_answer and UNAVAILABLE or REFUSED
end

local function range(rows)
  local found <const> = {}
  for _, row in ipairs(rows or {}) do
    found[c.net.unbase64(row.key)] = { value = c.net.unbase64(row.value or ""),
                                       version = number(row.mod_revision) }
  end
  return found
end

--- As MemoryStore's (memory.lua), and so are those that follow: nil and a message where no server
--- answers.
function EtcdStore:get(key)
  local answer, message = self:_call("/v3/kv/range", { key = c.net.base64(key) })
  if not answer then return nil, message end
  local row <const> = range(answer.kvs)[key]
  if not row then return false end
  return row.value, row.version
end

function EtcdStore:list(prefix)
  local answer, message = self:_call("/v3/kv/range",
    { key = c.net.base64(prefix), range_end = c.net.base64(range_end(prefix)) })
  if not answer then return nil, message end
  return range(answer.kvs)
end

local function put_request(key, value, lease)
  return { key = c.net.base64(key), value = c.net.base64(value), lease = lease }
end

-- Sets a key where the comparison holds.
function EtcdStore:_compare(comparison, key, value, lease)
  comparison.key = c.net.base64(key)
  local answer, message, code = self:_call("/v3/kv/txn", { compare = { comparison },
    success = { { request_put = put_request(key, value, lease) } } })
  if code == NOT_FOUND then return false end -- of the lease
  if not answer then return nil, message end
  return answer.succeeded == true and number(answer.header.revision)
end

function EtcdStore:put(key, value, lease)
  local answer, message, code = self:_call("/v3/kv/put", put_request(key, value, lease))
  if code == NOT_FOUND then return false end
  if not answer then return nil, message end
  return number(answer.header.revision)
end

function EtcdStore:create(key, value, lease)
  return self:_compare({ target = "CREATE", create_revision = "0" }, key, value, lease)
end

function EtcdStore:replace(key, value, version, lease)
  return self:_compare({ target = "MOD", mod_revision = tostring(version) }, key, value, lease)
end

function EtcdStore:remove(key)
  local answer, message = self:_call("/v3/kv/deleterange", { key = c.net.base64(key) })
  return answer and true, message
end

function EtcdStore:lease(seconds)
  local answer, message = self:_call("/v3/lease/grant", { TTL = math.ceil(seconds) })
  if not answer then return nil, message end
  return answer.ID
end

function EtcdStore:keep(lease)
  local answer, message = self:_call("/v3/lease/keepalive", { ID = lease })
  if not answer then return nil, message end
  return (number(answer.result and answer.result.TTL) or 0) > 0
end

function EtcdStore:drop(lease)
  local answer, message, code = self:_call("/v3/lease/revoke", { ID = lease })
  return (answer or code == NOT_FOUND) and true or nil, message
end

--- Why a job cannot use this store, however long it waits; nil: it can, or nobody answers.
function EtcdStore:refusal(key)
  local answer, message, code = self:_call("/v3/kv/range", { key = c.net.base64(key) })
  return not answer and code == REFUSED and message or nil
end

function EtcdStore:_end_watch()
  if self._watch then self._watch:close() end
  self._watch, self._watched = nil, nil
end

-- Begins to watch a prefix. Returns when the server does, so that no later change is missed.
function EtcdStore:_begin_watch(prefix)
  self:_end_watch()
  local http <const> = self:_client()
  if not http then return end
  local request <const> = { key = c.net.base64(prefix),
                            range_end = c.net.base64(range_end(prefix)) }
  self._watch = http:read(self._servers[self._current] .. "/v3/watch",
    encode { create_request = request }, self:_fields())
  local line <const> = self._watch and self._watch:line(ANSWER)
  if line and line:find '"created":true' then
    self._watched = prefix
  else
    self:_end_watch()
    c.runtime.sleep(PAUSE)
  end
end

function EtcdStore:wait(prefix, seconds)
  if self._watched ~= prefix then
    self:_begin_watch(prefix)
    return true
  end
  local line = self._watch:line(seconds)
  if line == false then return false end
  while line do
    if line:find '"error"' or line:find '"canceled":true' then line = nil end
    line = line and self._watch:line(0)
  end
  if line == nil then self:_end_watch() end
  return true
end

function EtcdStore:close()
  self:_end_watch()
  self._http = nil
end

local KNOWN <const> = { ca = true, cert = true, key = true, user = true, password = true }

--- The store of etcd://, etcds:// (TLS), http:// and https:// URLs; nil and a message.
function EtcdStore.open(parsed)
  local o <const> = {}
  for name, value in next, parsed.parameters do
    if not KNOWN[name] then
      return nil, ("unknown parameter %s: ca, cert, key, user, password"):format(name)
    end
    o[name] = value
  end
  local user <const>, password = (c.runtime.getenv "ETCDCTL_USER" or ""):match "^([^:]*):?(.*)$"
  o.user = o.user or parsed.user or user ~= "" and user or nil
  o.password = o.password or parsed.password or user ~= "" and user == o.user and password ~= ""
    and password or c.runtime.getenv "ETCDCTL_PASSWORD"
  local secure <const> = parsed.scheme == "etcds" or parsed.scheme == "https" or o.ca or o.cert
  o.secure = secure and true or false
  if secure then
    o.ca = o.ca or c.runtime.getenv "ETCDCTL_CACERT"
    o.cert = o.cert or c.runtime.getenv "ETCDCTL_CERT"
    o.key = o.key or c.runtime.getenv "ETCDCTL_KEY"
  end
  local servers <const> = {}
  for k, server in ipairs(parsed.hosts) do
    local host <const> = server.host:find ":" and "[" .. server.host .. "]" or server.host
    servers[k] = ("%s://%s:%d"):format(secure and "https" or "http", host, server.port or PORT)
  end
  if #servers == 0 then return nil, "no server: etcd://HOST:PORT,HOST:PORT/JOB" end
  local store <const> = EtcdStore(servers, o)
  local http, message = store:_client() -- a missing library is said now
  if not http then return nil, message end
  return store
end

return EtcdStore
