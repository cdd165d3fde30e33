--- stdlib/elastic/stores/file.lua: a key-value store in a folder that all hosts share (NFS,
--- Lustre).
--
-- Each version of a key is a file of its own, KEY@000000000012, which is made whole or not at all
-- (c.io.create_file: link(2), which NFS carries out on its server). The last one counts: to change
-- a key is to be the first who makes the file of the next version, so nothing needs a lock that a
-- dead process could keep. Versions older than a few are removed, the oldest first; who makes a
-- version therefore looks whether the one before it is still there, else it came too late.
--
-- A lease is a key that its owner changes again and again. Whoever has seen no change of it for its
-- seconds, on its own clock, ends it by its next version, unless its owner is faster: then all
-- hosts agree that it has ended. Keys name the lease that they were set with, and go with it.
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local PLAIN <const> = { plain = true }
local KEPT <const> = 8 -- versions of a key
local TRIES <const> = 50 -- of a change that others forestall
local LOOK <const> = 0.05 -- seconds between two looks at the folder

local FileStore = class.extend(nil, "FileStore")

--- `folder`: is made where it does not exist. `now` (optional): a clock.
function FileStore:init(folder, now)
  self._folder, self._now = folder, now or c.runtime.clock
  self._rows, self._leases, self._seen = {}, {}, {}
  local began <const> = c.runtime.time() * 1e6 // 1
  self._own = ("%s-%d-%d"):format(c.runtime.hostname(), c.runtime.pid(), began)
  self._count = 0
end

local function escape(key)
  return (key:gsub("[^%w._-]", function(char) return ("%%%02X"):format(char:byte()) end))
end

local function unescape(name)
  return (name:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

function FileStore:_path(key, version)
  return ("%s/%s@%012d"):format(self._folder, escape(key), version)
end

-- {[key] = the number of its last version} of all keys, and the lowest that is still there.
function FileStore:_scan()
  local names, message = c.io.list_folder(self._folder)
  if not names then return nil, message end
  local last <const>, first = {}, {}
  for _, name in ipairs(names) do
    local key, digits = name:match "^([^@.][^@]*)@(%d+)$"
    if key then
      key = unescape(key)
      local version <const> = math.tointeger(tonumber(digits))
      last[key] = math.max(last[key] or 0, version)
      first[key] = math.min(first[key] or version, version)
    end
  end
  return { last = last, first = first }
end

-- What the file of a version has: {value =, lease =} or {gone = true}; nil where it was removed.
function FileStore:_row(key, version)
  local known <const> = self._rows[key]
  if known and known.version == version then return known end
  local text <const> = c.io.read_file(self:_path(key, version))
  local row <const> = text and c.io.json_decode(text, PLAIN)
  if not row then return nil end
  row.version, self._rows[key] = version, row
  return row
end

-- Makes version `version` of a key: whether this was the first to do so.
function FileStore:_make(scan, key, version, row)
  local made, message = c.io.create_file(self:_path(key, version), c.io.json_encode(row, PLAIN))
  if not made then return made, message end
  local before <const> = version - 1
  if before > 0 and c.io.kind(self:_path(key, before)) == nil then return false end
  for old = scan.first[key] or version, version - KEPT do c.io.remove(self:_path(key, old)) end
  return true
end

local function lease_key(id) return "lease/" .. id end

-- Whether a lease runs. One that nobody has kept for its seconds ends now.
function FileStore:_runs(scan, id)
  local key <const> = lease_key(id)
  local version <const> = scan.last[key]
  local row <const> = version and self:_row(key, version)
  if not row or row.gone then return false end
  local seen, now = self._leases[id], self._now()
  if not seen or seen.version ~= version then
    seen = { version = version, since = now }
    self._leases[id] = seen
  end
  if now - seen.since < row.seconds then return true end
  return not self:_make(scan, key, version + 1, { gone = true })
end

-- The row of a key, nil where it does not exist.
function FileStore:_find(scan, key)
  local version <const> = scan.last[key]
  local row <const> = version and self:_row(key, version)
  if not row or row.gone or row.lease and not self:_runs(scan, row.lease) then return nil end
  return row
end

--- As MemoryStore's (memory.lua), and so are those that follow: nil and a message where the folder
--- cannot be read or written.
function FileStore:get(key)
  local scan, message = self:_scan()
  if not scan then return nil, message end
  local row <const> = self:_find(scan, key)
  if not row then return false end
  return row.value, row.version
end

function FileStore:list(prefix)
  local scan, message = self:_scan()
  if not scan then return nil, message end
  local found <const> = {}
  for key in next, scan.last do
    local row <const> = key:sub(1, #prefix) == prefix and self:_find(scan, key)
    if row then found[key] = { value = row.value, version = row.version } end
  end
  return found
end

-- Sets a key, where `allowed` says of its row (nil: it does not exist) that it may be; false where
-- not, or where somebody was faster, unless `again`.
function FileStore:_set(key, value, lease, allowed, again)
  for _ = 1, again and TRIES or 1 do
    local scan, message = self:_scan()
    if not scan then return nil, message end
    if not allowed(self:_find(scan, key)) then return false end
    if lease and not self:_runs(scan, lease) then return false end
    local version <const> = (scan.last[key] or 0) + 1
    local made, why = self:_make(scan, key, version, { value = value, lease = lease })
    if made == nil then return nil, why end
    if made then return version end
  end
  return false
end

function FileStore:put(key, value, lease)
  return self:_set(key, value, lease, function() return true end, true)
end

function FileStore:create(key, value, lease)
  return self:_set(key, value, lease, function(row) return row == nil end)
end

function FileStore:replace(key, value, version, lease)
  return self:_set(key, value, lease, function(row)
    return row ~= nil and row.version == version
  end)
end

function FileStore:remove(key)
  for _ = 1, TRIES do
    local scan, message = self:_scan()
    if not scan then return nil, message end
    if not self:_find(scan, key) then return true end
    local made, why = self:_make(scan, key, scan.last[key] + 1, { gone = true })
    if made ~= false then return made, why end
  end
  return nil, ("%s: others change %s again and again"):format(self._folder, key)
end

function FileStore:lease(seconds)
  local scan, message = self:_scan()
  if not scan then return nil, message end
  self._count = self._count + 1
  local id <const> = ("%s-%d"):format(self._own, self._count)
  local made, why = self:_make(scan, lease_key(id), 1, { seconds = seconds })
  return made and id or nil, why
end

function FileStore:keep(lease)
  local scan, message = self:_scan()
  if not scan then return nil, message end
  local key <const> = lease_key(lease)
  local row <const> = scan.last[key] and self:_row(key, scan.last[key])
  if not row or row.gone then return false end
  return self:_make(scan, key, row.version + 1, { seconds = row.seconds })
end

function FileStore:drop(lease) return self:remove(lease_key(lease)) end

-- A text that changes with whatever is below the prefix.
function FileStore:_state(prefix)
  local scan <const> = self:_scan()
  if not scan then return "" end
  local parts <const> = {}
  for key, version in next, scan.last do
    if key:sub(1, #prefix) == prefix then
      local row <const> = self:_find(scan, key)
      parts[#parts + 1] = ("%s@%d%s"):format(key, version, row and "" or "-")
    end
  end
  table.sort(parts)
  return table.concat(parts, "\n")
end

function FileStore:wait(prefix, seconds)
  local deadline <const> = self._now() + seconds
  while true do
    local state <const> = self:_state(prefix)
    if state ~= self._seen[prefix] then
      self._seen[prefix] = state
      return true
    end
    local left <const> = deadline - self._now()
    if left <= 0 then return false end
    c.runtime.sleep(math.min(left, LOOK))
  end
end

function FileStore:close() end

--- The store of a file:// URL; nil and a message.
function FileStore.open(parsed)
  local name <const> = next(parsed.parameters)
  if name then return nil, ("unknown parameter %s"):format(name) end
  local made, message = c.io.make_folder(parsed.path)
  if not made then return nil, message end
  return FileStore(parsed.path)
end

return FileStore
