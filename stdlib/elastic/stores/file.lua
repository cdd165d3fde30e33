--- stdlib/elastic/stores/file.lua: a key-value store in a folder that all hosts share (NFS,
--- Lustre).
--
-- Each version of a key is a file of its own, as round%2F/state@000000000012 of round/state, which
-- is made whole or not at all (c.io.create_file: link(2), which NFS carries out on its server). The
-- last one counts: to change a key is to be the first who makes the file of the next version, so
-- nothing needs a lock that a dead process could keep. Of a key's versions a few are kept and older
-- ones removed, the oldest first, so those that are there have no gap; who makes a version looks
-- whether the one before it is still there, else it came too late.
--
-- Some folders have files of each host of the job, and each host looks for changes again and again:
-- a request lists a folder only where it does not know of a key in it. Where it has seen a version
-- of the key that is still there, the last one is the first after that which no other follows.
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
local LEASES <const> = "lease/"
local NOTHING <const> = { last = {} }
local FEW <const> = 8 -- leases that are looked for one by one

local FileStore = class.extend(nil, "FileStore")

--- `folder`: is made where it does not exist. `now` (optional): a clock.
function FileStore:init(folder, now)
  self._folder, self._now = folder, now or c.runtime.clock
  self._rows, self._leases, self._seen = {}, {}, {}
  local began <const> = c.runtime.time() * 1e6 // 1
  self._own = ("%s-%d-%d"):format(c.runtime.hostname(), c.runtime.pid(), began)
  self._count = 0
end

local function escape(text)
  return (text:gsub("[^%w_-]", function(char) return ("%%%02X"):format(char:byte()) end))
end

local function unescape(name)
  return (name:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

-- "a/b/" of the key a/b/c: what is before its name.
local function folder_of(key) return key:match "^.*/" or "" end

function FileStore:_path(key, version)
  local folder <const> = folder_of(key)
  return ("%s/%s/%s@%012d"):format(self._folder, escape(folder), escape(key:sub(#folder + 1)),
    version)
end

-- The entries of a folder, listed once in a request, whose listings are in `scan`: {last = {[key] =
-- the number of its last version}, folders = those in it}; nil and a message.
function FileStore:_list(scan, folder)
  if scan[folder] then return scan[folder] end
  local path <const> = ("%s/%s"):format(self._folder, escape(folder))
  local names, message = c.io.list_folder(path)
  if not names and (c.io.kind(path) or not c.io.kind(self._folder)) then return nil, message end
  local found <const> = { last = {}, folders = {} }
  for _, name in ipairs(names or {}) do -- else nothing was put there yet
    local key, digits = name:match "^([%w%%_-]+)@(%d+)$"
    if key then
      key = folder .. unescape(key)
      found.last[key] = math.max(found.last[key] or 0, math.tointeger(tonumber(digits)))
    elseif name:find "^[%w%%_-]+%%2F$" then
      table.insert(found.folders, unescape(name))
    end
  end
  scan[folder] = found
  return found
end

-- Whether a version of a key that no other follows is its last one. A file that was made too late
-- has none before it.
function FileStore:_is_there(key, version)
  return c.io.kind(self:_path(key, version)) ~= nil
    and (version == 1 or c.io.kind(self:_path(key, version - 1)) ~= nil)
end

-- The last version of a key, 0: it has none; nil and a message.
function FileStore:_last(scan, key)
  local folder <const>, known = folder_of(key), self._rows[key]
  if known and not scan[folder] then
    local last = known.version
    while c.io.kind(self:_path(key, last + 1)) do last = last + 1 end
    if self:_is_there(key, last) then return last end
  end
  local found <const>, message = self:_list(scan, folder)
  if not found then return nil, message end
  return found.last[key] or 0
end

-- What the file of a version has: {value =, lease =} or {gone = true}; nil where it was removed.
function FileStore:_row(key, version)
  local known <const> = self._rows[key]
  if known and known.version == version then return known end
  if version == 0 then return nil end
  local text <const> = c.io.read_file(self:_path(key, version))
  local row <const> = text and c.io.json_decode(text, PLAIN)
  if not row then return nil end
  row.version, self._rows[key] = version, row
  return row
end

-- Removes the versions of a key before `first`.
function FileStore:_remove_before(key, first)
  local lowest = first
  while lowest > 1 and c.io.kind(self:_path(key, lowest - 1)) do lowest = lowest - 1 end
  for version = lowest, first - 1 do c.io.remove(self:_path(key, version)) end
end

-- Makes version `version` of a key: whether this was the first to do so.
function FileStore:_make(key, version, row)
  local path <const> = self:_path(key, version)
  if version == 1 then c.io.make_folder(path:match "^(.*)/") end
  local made, message = c.io.create_file(path, c.io.json_encode(row, PLAIN))
  if not made then return made, message end
  if not self:_is_there(key, version) then
    c.io.remove(path) -- the others are many versions further
    return false
  end
  self:_remove_before(key, version - KEPT + 1)
  row.version, self._rows[key] = version, row
  return true
end

local function lease_key(id) return LEASES .. id end

-- Whether a lease runs. One that nobody has kept for its seconds ends now.
function FileStore:_runs(scan, id)
  local key <const> = lease_key(id)
  local version <const> = self:_last(scan, key)
  local row <const> = self:_row(key, version)
  if not row or row.gone then return false end
  local seen, now = self._leases[id], self._now()
  if not seen or seen.version ~= version then
    seen = { version = version, since = now }
    self._leases[id] = seen
  end
  if now - seen.since < row.seconds then return true end
  return not self:_make(key, version + 1, { gone = true })
end

-- The row of a version of a key, nil where the key does not exist.
function FileStore:_find(scan, key, version)
  local row <const> = self:_row(key, version)
  if not row or row.gone or row.lease and not self:_runs(scan, row.lease) then return nil end
  return row
end

--- As MemoryStore's (memory.lua), and so are those that follow: nil and a message where the folder
--- cannot be read or written.
function FileStore:get(key)
  local scan <const> = {}
  local version, message = self:_last(scan, key)
  if not version then return nil, message end
  local row <const> = self:_find(scan, key, version)
  if not row then return false end
  return row.value, row.version
end

-- Whether keys of a folder may begin with a prefix.
local function may_have(folder, prefix)
  local n <const> = math.min(#folder, #prefix)
  return folder:sub(1, n) == prefix:sub(1, n) and not prefix:find("/", n + 1, true)
end

-- Calls fn(key, version, row or nil) for the keys that begin with a prefix; true, or nil and a
-- message.
function FileStore:_each(prefix, fn)
  local scan <const>, versions, leases = {}, {}, 0
  local top, why = self:_list(scan, "")
  if not top then return nil, why end
  for _, folder in ipairs { "", table.unpack(top.folders) } do
    local found, message = NOTHING, nil
    if may_have(folder, prefix) then found, message = self:_list(scan, folder) end
    if not found then return nil, message end
    for key, version in next, found.last do
      if key:sub(1, #prefix) == prefix then
        local row <const> = self:_row(key, version)
        versions[key], leases = version, leases + (row and row.lease and 1 or 0)
      end
    end
  end
  if leases > FEW then self:_list(scan, LEASES) end
  for key, version in next, versions do fn(key, version, self:_find(scan, key, version)) end
  return true
end

function FileStore:list(prefix)
  local found <const> = {}
  local done, message = self:_each(prefix, function(key, version, row)
    if row then found[key] = { value = row.value, version = version } end
  end)
  return done and found, message
end

-- Sets a key, where `allowed` says of its row (nil: it does not exist) that it may be; false where
-- not, or where somebody was faster, unless `again`.
function FileStore:_set(key, value, lease, allowed, again)
  for _ = 1, again and TRIES or 1 do
    local scan <const> = {}
    local version, message = self:_last(scan, key)
    if not version then return nil, message end
    if not allowed(self:_find(scan, key, version)) then return false end
    if lease and not self:_runs(scan, lease) then return false end
    local made, why = self:_make(key, version + 1, { value = value, lease = lease })
    if made == nil then return nil, why end
    if made then return version + 1 end
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
    local scan <const> = {}
    local version, message = self:_last(scan, key)
    if not version then return nil, message end
    if not self:_find(scan, key, version) then return true end
    local made, why = self:_make(key, version + 1, { gone = true })
    if made ~= false then return made, why end
  end
  return nil, ("%s: others change %s again and again"):format(self._folder, key)
end

function FileStore:lease(seconds)
  if not c.io.kind(self._folder) then return nil, self._folder .. ": no such folder" end
  self._count = self._count + 1
  local id <const> = ("%s-%d"):format(self._own, self._count)
  local made, why = self:_make(lease_key(id), 1, { seconds = seconds })
  return made and id or nil, why
end

function FileStore:keep(lease)
  local key <const> = lease_key(lease)
  local version, message = self:_last({}, key)
  if not version then return nil, message end
  local row <const> = self:_row(key, version)
  if not row or row.gone then return false end
  return self:_make(key, version + 1, { seconds = row.seconds })
end

function FileStore:drop(lease) return self:remove(lease_key(lease)) end

--- Why a job cannot use this folder, however long it waits; nil: it can.
function FileStore:refusal(_)
  local can <const>, message = c.io.can_write(self._folder)
  return not can and message or nil
end

-- A text that changes with whatever is below the prefix.
function FileStore:_state(prefix)
  local parts <const> = {}
  self:_each(prefix, function(key, version, row)
    parts[#parts + 1] = ("%s@%d%s"):format(key, version, row and "" or "-")
  end)
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
