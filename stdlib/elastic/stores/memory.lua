--- stdlib/elastic/stores/memory.lua: a key-value store in the memory of this process: of jobs on
--- one host, of the tcp store's server, and of the model of the rendezvous protocol.
--
-- What a key is given at a change is its version, from a counter of all changes, as a revision of
-- etcd: of two keys the one that was changed later has the larger one. Nothing here can fail to be
-- reached, so no method returns a message.
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local LOG <const> = 4096 -- changes that are remembered for those who wait

local MemoryStore = class.extend(nil, "MemoryStore")

--- `now()` (optional): seconds on a clock that is never set back.
function MemoryStore:init(now)
  self._data = { now = now or c.runtime.clock, keys = {}, leases = {}, log = {}, revision = 0,
                 last_lease = 0, next_expiry = math.huge }
  self._seen = {}
end

--- Another client of the same keys, with its own record of the changes that it waited for.
function MemoryStore:share()
  local client <const> = MemoryStore()
  client._data = self._data
  return client
end

local function note(data, key)
  data.revision = data.revision + 1
  data.log[data.revision], data.log[data.revision - LOG] = key, nil
  return data.revision
end

local function detach(data, key)
  local row <const> = data.keys[key]
  local lease <const> = row and row.lease and data.leases[row.lease]
  if lease then lease.keys[key] = nil end
end

local function remove(data, key)
  detach(data, key)
  data.keys[key] = nil
  note(data, key)
end

local function drop(data, id)
  local keys <const> = {}
  for key in next, data.leases[id].keys do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do remove(data, key) end
  data.leases[id] = nil
end

-- Ends the leases whose time is over. The next expiry is a lower bound: keeping a lease does not
-- raise it.
local function expire(data)
  local now <const> = data.now()
  if now < data.next_expiry then return end
  local over <const> = {}
  for id, lease in next, data.leases do
    if lease.expiry <= now then over[#over + 1] = id end
  end
  table.sort(over)
  for _, id in ipairs(over) do drop(data, id) end
  data.next_expiry = math.huge
  for _, lease in next, data.leases do
    data.next_expiry = math.min(data.next_expiry, lease.expiry)
  end
end

local function set(data, key, value, id)
  local lease <const> = id and data.leases[id]
  if id and not lease then return false end
  detach(data, key)
  data.keys[key] = { value = value, version = note(data, key), lease = id }
  if lease then lease.keys[key] = true end
  return data.keys[key].version
end

--- The value of a key and its version; false when it does not exist.
function MemoryStore:get(key)
  expire(self._data)
  local row <const> = self._data.keys[key]
  if not row then return false end
  return row.value, row.version
end

--- {[key] = {value =, version =}} of the keys that begin with `prefix`.
function MemoryStore:list(prefix)
  expire(self._data)
  local found <const> = {}
  for key, row in next, self._data.keys do
    if key:sub(1, #prefix) == prefix then
      found[key] = { value = row.value, version = row.version }
    end
  end
  return found
end

--- Sets a key: its version; false when the lease has expired.
function MemoryStore:put(key, value, lease)
  expire(self._data)
  return set(self._data, key, value, lease)
end

--- The same of a key that does not exist; false when it does.
function MemoryStore:create(key, value, lease)
  expire(self._data)
  return not self._data.keys[key] and set(self._data, key, value, lease)
end

--- The same of a key that still has this version; false when it has changed.
function MemoryStore:replace(key, value, version, lease)
  expire(self._data)
  local row <const> = self._data.keys[key]
  return row ~= nil and row.version == version and set(self._data, key, value, lease)
end

--- Removes a key; true also when it did not exist.
function MemoryStore:remove(key)
  expire(self._data)
  if self._data.keys[key] then remove(self._data, key) end
  return true
end

--- A new lease: keys that are set with it are removed when it was not kept for `seconds`.
function MemoryStore:lease(seconds)
  local data <const> = self._data
  expire(data)
  local expiry <const> = data.now() + seconds
  data.last_lease = data.last_lease + 1
  data.leases[data.last_lease] = { seconds = seconds, expiry = expiry, keys = {} }
  data.next_expiry = math.min(data.next_expiry, expiry)
  return data.last_lease
end

--- Keeps a lease for its seconds from now on; false when it has expired.
function MemoryStore:keep(lease)
  local data <const> = self._data
  expire(data)
  local found <const> = data.leases[lease]
  if not found then return false end
  found.expiry = data.now() + found.seconds
  return true
end

--- Ends a lease, and removes its keys.
function MemoryStore:drop(lease)
  expire(self._data)
  if self._data.leases[lease] then drop(self._data, lease) end
  return true
end

--- The number of the last change, and the keys that changed after change `since`; nil in place of
--- them when there are too many to be known.
function MemoryStore:changes(since)
  local data <const> = self._data
  expire(data)
  if since < data.revision - LOG then return data.revision, nil end
  return data.revision, table.move(data.log, since + 1, data.revision, 1, {})
end

-- Whether something below the prefix has changed since the last wait for it.
local function has_changed(self, prefix)
  local revision <const>, keys = self:changes(self._seen[prefix] or -LOG - 1)
  self._seen[prefix] = revision
  for _, key in ipairs(keys or {}) do
    if key:sub(1, #prefix) == prefix then return true end
  end
  return keys == nil
end

--- Waits until something below the prefix may have changed since the last wait for it (true; at
--- the first wait at once), at most `seconds` (false), or until a signal comes.
function MemoryStore:wait(prefix, seconds)
  if has_changed(self, prefix) then return true end
  if seconds <= 0 then return false end
  c.runtime.sleep(seconds)
  return has_changed(self, prefix)
end

--- The store is no longer used.
function MemoryStore:close() end

return MemoryStore
