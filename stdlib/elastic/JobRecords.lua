--- stdlib/elastic/JobRecords.lua: what a job has in the store of its launchers. Below ltrain/JOB/:
---
---   hosts/ID         a host: its launcher, address, slots, the last rounds that it ended; with a
---                    lease
---   round/leader     the host that decides; with its lease
---   round/state      the document, which all hosts watch; the leader watches the hosts, too
---   members/TABLE/K  part K of the members of a round
--
-- What all hosts read at each change does not grow with their number: N hosts that read a list of
-- N members would move N² rows, of 4,096 hosts over a gigabyte. A host therefore reads only the
-- part with its own row, which its id determines; the leader alone reads all. The parts of a table
-- are written before the document that names it and never changed, since the name has the round's
-- number and a hash of the rows: two leaders that write the same name write the same rows.
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local PLAIN <const> = { plain = true }
local PART <const> = 64 -- members in a part, on average
local CLOSED_SECONDS <const> = 60 -- that a closed job is remembered for hosts that come late
local TOO_LATE <const> = "another host has changed the document"
local ROW <const> = { "id", "launch", "title", "slots", "index", "first_rank" }

local JobRecords = class.extend(nil, "JobRecords")

JobRecords.TOO_LATE = TOO_LATE

local function encode(value) return c.io.json_encode(value, PLAIN) end
local function decode(text) return text and c.io.json_decode(text, PLAIN) or nil end

function JobRecords:init(store, job)
  self.store, self.prefix = store, ("ltrain/%s/"):format(job)
end

function JobRecords:_key(name, ...) return self.prefix .. name:format(...) end

--- Below what a host waits for changes.
function JobRecords:watched(is_leader) return self.prefix .. (is_leader and "" or "round/") end

--- Reads the document (false: there is none), its version, and the leader (nil: there is none).
--- Nil and a message when the store cannot be reached.
function JobRecords:read()
  local rows, message = self.store:list(self:_key "round/")
  if not rows then return nil, message end
  local leader <const> = rows[self:_key "round/leader"]
  local state <const> = rows[self:_key "round/state"]
  local doc <const> = state and decode(state.value) or false
  if state and type(doc) ~= "table" then
    return nil, "what is stored is not the state of a job"
  end
  return doc, state and state.version, leader and decode(leader.value)
end

--- Makes a host the leader, where there is none: whether that was done.
function JobRecords:lead(row, lease)
  return self.store:create(self:_key "round/leader", encode(row), lease)
end

-- Which part of a table has the row of a host.
local function part_of(id, parts)
  local sum = 0
  for k = 1, #id do sum = (sum * 31 + id:byte(k)) % 0x7fffffff end
  return sum % parts
end

local function pack(member)
  local row <const> = {}
  for k, name in ipairs(ROW) do row[k] = member[name] end
  return row
end

local function unpack(row)
  local member <const> = {}
  for k, name in ipairs(ROW) do member[name] = row[k] end
  return member
end

-- Writes the members of a round: the name of their table and the number of its parts; nil and a
-- message.
function JobRecords:_write_members(number, members)
  local parts <const>, texts = {}, {}
  for k = 1, (#members + PART - 1) // PART do parts[k] = {} end
  for _, member in ipairs(members) do
    table.insert(parts[part_of(member.id, #parts) + 1], pack(member))
  end
  for k, part in ipairs(parts) do texts[k] = encode(part) end
  local name <const> = ("%d.%s"):format(number, c.runtime.sha256(texts):sub(1, 16))
  for k, text in ipairs(texts) do
    local set <const>, message = self.store:put(self:_key("members/%s/%d", name, k - 1), text)
    if not set then return nil, message end
  end
  return name, #parts
end

-- Removes the tables of rounds before this one: their numbers never come again.
function JobRecords:_remove_members(number)
  for key in next, self.store:list(self:_key "members/") or {} do
    local of <const> = tonumber(key:sub(#self.prefix + 1):match "^members/(%d+)%.")
    if of and of < number then self.store:remove(key) end
  end
end

--- Writes the document, of a new round with its members: itself and its version; nil where another
--- was faster (TOO_LATE), or why not.
function JobRecords:write(doc, version, members)
  local key <const>, lease = self:_key "round/state", nil
  if doc.status == "closed" then
    local why
    lease, why = self.store:lease(CLOSED_SECONDS)
    if not lease then return nil, why end
    doc.table, doc.parts = nil, nil
  elseif members then
    doc.table, doc.parts = self:_write_members(doc.number, members)
    if not doc.table then return nil, doc.parts end
  end
  local set, message
  if version then
    set, message = self.store:replace(key, encode(doc), version, lease)
  else
    set, message = self.store:create(key, encode(doc), lease)
  end
  if not set then return nil, message or TOO_LATE end
  if lease or members then self:_remove_members(lease and math.huge or doc.number) end
  return doc, set
end

--- The members of the document's round in the order of their ranks; nil and a message.
function JobRecords:members(doc)
  if not doc.table then return {} end
  local rows, message = self.store:list(self:_key("members/%s/", doc.table))
  if not rows then return nil, message end
  local members <const> = {}
  for _, row in next, rows do
    for _, packed in ipairs(decode(row.value) or {}) do
      local member <const> = unpack(packed)
      members[member.index] = member
    end
  end
  if #members ~= doc.hosts then return nil, TOO_LATE end -- a later round has replaced it
  return members
end

--- A host as a member of the document's round; false where it is none, nil and a message.
function JobRecords:member(doc, id, launch)
  if not doc.table then return false end
  local text <const>, message = self.store:get(
    self:_key("members/%s/%d", doc.table, part_of(id, doc.parts)))
  if not text then return nil, text == nil and message or TOO_LATE end
  for _, packed in ipairs(decode(text) or {}) do
    local member <const> = unpack(packed)
    if member.id == id and member.launch == launch then return member end
  end
  return false
end

--- The hosts whose leases run, by their ids.
function JobRecords:hosts()
  local rows, message = self.store:list(self:_key "hosts/")
  if not rows then return nil, message end
  local hosts <const> = {}
  for _, row in next, rows do
    local host <const> = decode(row.value)
    if type(host) == "table" and host.id then
      hosts[host.id], host.version = host, row.version
    end
  end
  return hosts
end

--- Sets the key of a host; `before`: what its launcher has set it to, nil: nothing. Returns what it
--- is now; false where the lease has expired; nil and a message, or nil, nil and the row of another
--- launcher that has the key.
function JobRecords:publish(host, lease, before)
  local key <const>, text = self:_key("hosts/%s", host.id), encode(host)
  if text == before then return text end
  if not before then
    local set <const>, message = self.store:create(key, text, lease)
    if set or set == nil then return set and text, message end
    local there <const>, why = self.store:get(key)
    if there == nil then return nil, why end
    local other <const> = decode(there or nil)
    if other and other.launch ~= host.launch then return nil, nil, other end
  end
  local set <const>, message = self.store:put(key, text, lease)
  return set and text, message
end

return JobRecords
