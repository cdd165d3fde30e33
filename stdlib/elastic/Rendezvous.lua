--- stdlib/elastic/Rendezvous.lua: how a launcher meets those of the other hosts of its job, over a
--- store: joins rounds, notices when they are over, and says how its ranks ended.
--
-- What is decided is in rendezvous_state.lua, what the store has in JobRecords.lua; here are the
-- order of requests, and clocks. Hosts that come, of which there may be thousands, concern the
-- leader alone. Every clock is of this process: hosts compare none. While the store cannot be
-- reached a round goes on for `patience` seconds; the others may have begun the next one without
-- this host after `lease`.
local JobRecords = require "ltrain.elastic.JobRecords"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local rendezvous_state = require "ltrain.elastic.rendezvous_state"

local WAIT <const> = 0.1 -- seconds between two calls of tick
local MOST_SETTLING <const> = 10 -- times `settle`
local MESSAGE <const> = 2000 -- bytes of a failure's text
local NO_DOCUMENT <const> = "waits for the leader"
local TRIES <const> = 20
local QUIET <const> = 1 -- seconds until a store that did not answer is asked again

local Rendezvous = class.extend(nil, "Rendezvous")

--- Options: store; job: its name; host: {id, name, address, port, slots} of this one, read anew at
--- each join; min, max: hosts of a round; max_restarts (3); lease (5): seconds after which a host
--- that is not heard of has gone; settle (2): that nobody must have come for, where fewer than max
--- hosts would begin; patience (30), now (optional): a clock; seed: of what the ranks of a new job
--- draw at random.
function Rendezvous:init(options)
  self.store, self.host, self.seed = options.store, options.host, options.seed
  self.records = JobRecords(options.store, options.job)
  self.settings = { min = options.min, max = options.max,
                    max_restarts = options.max_restarts or 3 }
  self.seconds, self.settle = options.lease or 5, options.settle or 2
  self.patience, self.now = options.patience or 30, options.now or c.runtime.clock
  self.keep_every = options.keep_every or self.seconds / 3
  self.launch = options.launch
    or ("%d.%x"):format(c.runtime.pid(), math.tointeger(c.runtime.time() * 1e6 // 1) & 0xffffffffff)
  -- Of this launcher: the lease; what the store has of it; its rounds: the one that runs here, the
  -- last that ended, the last that ended well; a failure that the document has not got yet.
  self.lease, self.kept, self.published = nil, self.now(), nil
  self.round, self.after, self.done_round, self.failure = nil, -1, -1, nil
  self.is_leader = false
  -- Of the round of which there was a document last: this host's row; the leader has all.
  self.place, self.members = {}, { list = {} }
end

--- Why a job cannot use a store, however long its launchers wait; nil: it can, or it cannot be
--- reached now.
function Rendezvous.refusal(store, job)
  return store.refusal and store:refusal(JobRecords(store, job):watched(true)) or nil
end

-- What the others have to know of this host.
function Rendezvous:_row()
  local host <const>, last = self.host, self.last_round
  return { id = host.id, launch = self.launch, name = host.name, address = host.address,
           port = host.port, slots = host.slots, after = self.after, done = self.done_round,
           index = last and last.index }
end

function Rendezvous:_lost_lease()
  self.lease, self.published, self.is_leader = nil, nil, false
end

-- Keeps the lease when that is due; false when it has expired, nil and a message when the store
-- cannot be reached.
function Rendezvous:_keep()
  local started <const> = self.now()
  if not self.lease or started - self.kept < self.keep_every then return true end
  local kept, message = self.store:keep(self.lease)
  if kept then self.kept = started end
  if kept == false then self:_lost_lease() end
  return kept, message
end

-- Another launcher has this host's key. One that ended without a word loses it with its lease; one
-- that keeps it makes this one too many: false and an error; before that nil and what it waits for.
function Rendezvous:_rival(other)
  if self.rival ~= other.launch then self.rival, self.rival_since = other.launch, self.now() end
  if self.now() - self.rival_since > 2 * self.seconds + 1 then
    return false, ("a launcher of host %s has joined the job already (%s on %s): end it, or give "
      .. "each its own --host_id; another job at the same place needs its own --rdzv_id"):format(
      self.host.id, other.launch, other.address)
  end
  return nil, ("waits for the lease of an earlier launcher of host %s"):format(self.host.id)
end

-- Sets this host's key: true; nil and a message when that was not possible yet; false and an error.
function Rendezvous:_publish()
  if not self.lease then
    local started <const> = self.now()
    local lease, message = self.store:lease(self.seconds)
    if not lease then return nil, message end
    self.lease, self.kept = lease, started
  end
  local text <const>, message, other = self.records:publish(self:_row(), self.lease,
    self.published)
  if other then return self:_rival(other) end
  if text == false then self:_lost_lease() end
  self.published = text or self.published
  return text and true or nil, message or "the lease of this host has expired"
end

-- Reads the document (false: there is none) and its version, and this host's place in its round;
-- sees to it that there is a leader: whoever first notices that there is none. Nil and a message
-- when the store cannot be reached.
function Rendezvous:_read()
  local doc <const>, version, leader = self.records:read()
  if doc == nil then return nil, version end
  self.leader = leader
  if not leader and self.lease then
    local row <const> = { launch = self.launch, settings = self.settings }
    local made, why = self.records:lead(row, self.lease)
    if made == nil then return nil, why end
    self.leader = made and row or nil
  end
  self.is_leader = self.leader ~= nil and self.leader.launch == self.launch
  if doc and doc.table and doc.table ~= self.place.table then
    local member <const>, why = self.records:member(doc, self.host.id, self.launch)
    if member == nil then return nil, why end
    self.place = { table = doc.table, member = member or nil }
  end
  return doc, version
end

-- This host as a member of the document's round; nil: it is none.
function Rendezvous:_member(doc)
  return doc.table and doc.table == self.place.table and self.place.member or nil
end

-- The members of the document's round; nil and a message.
function Rendezvous:_members(doc)
  if self.members.table ~= doc.table then
    local list <const>, message = self.records:members(doc)
    if not list then return nil, message end
    self.members = { table = doc.table, list = list }
  end
  return self.members.list
end

-- Whether nobody has come or gone for `settle` seconds, or somebody has waited for ten times that.
function Rendezvous:_settled(doc, hosts)
  local count, now, of = 0, self.now(), doc.status .. doc.number
  for _ in next, hosts do count = count + 1 end
  local nobody_waits <const> = doc.status == "running" and count <= doc.hosts
    or doc.status == "waiting" and count < self.settings.min
  if self.settling ~= of or nobody_waits then self.settling, self.waiting_since = of, now end
  if self.count ~= count then self.count, self.counted = count, now end
  return now - math.max(self.counted, self.waiting_since) >= self.settle
    or now - self.waiting_since >= MOST_SETTLING * self.settle
end

-- The leader's part: the document, changed where it has to be.
function Rendezvous:_lead(doc, version)
  local hosts, message = self.records:hosts()
  if not hosts then return nil, message end
  local members <const>, why = self:_members(doc)
  if not members then return nil, why end
  local settled <const> = self:_settled(doc, hosts)
  self.unsettled = not settled
  local view <const> = { hosts = hosts, settled = settled,
                         min = self.settings.min, max = self.settings.max,
                         max_restarts = self.settings.max_restarts, seed = self.seed }
  local new <const>, of_new = rendezvous_state.next(doc, members, view)
  if new then return self:_begin(new, version, of_new) end
  self.waits = doc.status == "waiting" and ("waits for hosts: %d of at least %d"):format(
    self.count, self.settings.min) or nil
  return doc, version
end

-- Writes what the leader has decided; `members`: of a new round.
function Rendezvous:_begin(new, version, members)
  local doc <const>, what = self.records:write(new, version, members)
  if doc and members then
    self.members = { table = doc.table, list = members }
    self.place = { table = doc.table, member = nil }
    for _, member in ipairs(members) do
      if member.launch == self.launch then self.place.member = member end
    end
  end
  return doc, what
end

-- The document and its version after the failure of a rank here, if there is one to report, is in
-- it; nil and why that could not be done.
function Rendezvous:_report(doc, version)
  local failure <const> = self.failure
  if not failure then return doc, version end
  local new <const> = rendezvous_state.report(doc, self:_member(doc), failure.round, failure)
  if new then doc, version = self.records:write(new, version) end
  if doc then self.failure = nil end
  return doc, version
end

-- Brings the document up to date with what this host knows of: the document and its version; nil
-- and what it waits for.
function Rendezvous:_advance()
  local doc, version = self:_read()
  if doc == nil then return nil, version end
  if not doc then
    if not self.is_leader then return nil, NO_DOCUMENT end
    local last <const> = self.round or self.last_round
    doc, version = self.records:write(rendezvous_state.new(last and last.number,
      last and last.seed))
    if not doc then return nil, version end
  end
  doc, version = self:_report(doc, version)
  local begins <const> = doc and not self.round and self:_assignment(doc)
  if doc and self.is_leader and self.published and not begins then
    doc, version = self:_lead(doc, version)
  end
  return doc, version
end

-- Why this launcher may not take part.
function Rendezvous:_refusal()
  local own <const>, other = self.settings, self.leader and self.leader.settings
  if not other then return nil end
  for _, name in ipairs { "min", "max", "max_restarts" } do
    if own[name] ~= other[name] then
      return ("host %s was started with %s = %d, the hosts that it would join with %d"):format(
        self.host.name, name, own[name], other[name])
    end
  end
end

function Rendezvous:_assignment(doc)
  return rendezvous_state.assignment(doc, self:_member(doc), self.after)
end

-- Whether nothing is to be asked until the document changes: thousands of hosts wait for one.
function Rendezvous:_is_idle()
  return self.idle and self.now() - self.kept < self.keep_every
end

-- One attempt to get into a round: it, or nil and what it waits for.
function Rendezvous:_try()
  self.idle = false
  local kept, message = self:_keep()
  if kept == nil then return nil, message end
  if self.failure then -- before the next round can begin, which counts it
    local doc, version = self:_read()
    if doc then doc, version = self:_report(doc, version) end
    if doc == nil then return nil, version end
    self.failure = nil
  end
  local published, why = self:_publish()
  if published == false then return { ended = true, status = 2, message = why } end
  if not published then return nil, why end
  local doc, what = self:_advance()
  if not doc then return nil, what end
  local refusal <const> = not self.is_leader and self:_refusal()
  if refusal then return { ended = true, status = 2, message = refusal } end
  local round <const> = self:_assignment(doc)
  self.idle = not round and not self.is_leader
  -- A round that was over before this host saw that it had begun has no ranks here.
  if doc.status == "waiting" and self:_member(doc) and self.after ~= doc.number then
    self.after, self.idle = doc.number, false
  end
  return round, not round and (self.is_leader and self.waits or "waits for the next round") or nil
end

-- The ranks of the round that ran here have ended.
function Rendezvous:_close_round()
  if not self.round then return end
  self.after, self.last_round, self.round = self.round.number, self.round, nil
end

--- Whether the job is closed, for a host that does not take part: {ended = true, status =,
--- message =}, or nil.
function Rendezvous:ended()
  local doc <const> = self:_read()
  return doc and doc.status == "closed" and self:_assignment(doc) or nil
end

--- Waits for the next round in which this host takes part: {number =, hosts = in the order of their
--- ranks, index = of this one, first_rank =, world_size =, reason = why the last one ended ("" at
--- first), restarts =}; {ended = true, status =, message =} when there is none; nil when
--- tick(text), which is called ten times a second with what is waited for, returns true. All ranks
--- of this host's last round must have ended.
function Rendezvous:join(tick)
  self:_close_round()
  local text, seconds = nil, 0
  self.idle = false
  while true do
    -- Watched before it is read: what changes after that is not missed, and nothing is read twice.
    local changed <const>, round = self.store:wait(self.records:watched(self.is_leader), seconds)
    if changed or not self:_is_idle() then round, text = self:_try() end
    if round then
      if not round.ended then self.round, self.done_round = round, -1 end
      if round.ended then self:_end(round) end
      return round
    end
    if tick and tick(text) then return nil end
    seconds = WAIT
  end
end

-- The job is over for this host, which may have come when it was over.
function Rendezvous:_end(round)
  if round.message == "" and self.after < 0 then
    round.message = "the job has ended already, nothing was run: give another one its own "
      .. "--rdzv_id, or wait a minute"
  end
  self:_forget()
end

-- This host's key and leadership go.
function Rendezvous:_forget()
  if self.lease then self.store:drop(self.lease) end
  self:_lost_lease()
end

--- Nil while the round goes on; else why it is over ("host b has gone"), of which kind that is:
--- "gone", "come", "failed", "left", "lost" (this host's place or the job's state) or "ended" (join
--- says how), and whether a signal has ended a rank of it. Keeps the lease; cheap, unless something
--- has changed.
function Rendezvous:poll()
  local round <const> = self.round
  if not round then return nil end
  local before <const> = self.kept
  if self.quiet_until and self.now() < self.quiet_until then return nil end
  self.quiet_until = nil
  local kept = self:_keep()
  if kept == false then return "the lease of this host has expired", "lost" end
  if self.now() - self.kept > self.patience then
    return ("the store could not be reached for %g s"):format(self.patience), "lost"
  elseif kept == nil then
    self.quiet_until = self.now() + QUIET
    return nil
  end
  local changed <const> = self.store:wait(self.records:watched(self.is_leader), 0)
  local news <const> = self.failure ~= nil or self.unpublished or before ~= self.kept
  if not changed and not news and not self.unsettled then return nil end
  if self.unpublished then self.unpublished = not self:_publish() end
  local doc, message = self:_advance()
  if not doc and message == NO_DOCUMENT then
    return "the store has lost the state of the job", "lost"
  elseif not doc then
    return nil
  end
  return rendezvous_state.over(doc, round)
end

--- A rank of this host failed: the round is over on all hosts. {rank =, step = or nil, message =}.
--- Of several reports the first is the one that ends a job.
function Rendezvous:failed(report)
  local round <const> = self.round
  if not round then return end
  local text <const> = c.runtime.printable(tostring(report.message):sub(1, MESSAGE), "lines")
  self.failure = self.failure or { round = round.number, rank = report.rank, step = report.step,
    killed = report.killed, message = text }
  self:_advance() -- else the next poll or join does
end

--- All ranks of this host ended well. When those of all hosts have, poll returns "ended".
function Rendezvous:done()
  local round <const> = self.round
  if not round then return end
  self.done_round = round.number
  self.unpublished = not self:_publish()
end

--- This host leaves the job, whose ranks here have ended: the others go on without it; it may join
--- again. Nil and a message where the store cannot
--- be reached: they do so when its lease has expired.
function Rendezvous:leave(reason)
  local done, message = nil, JobRecords.TOO_LATE
  for _ = 1, TRIES do
    if message ~= JobRecords.TOO_LATE then break end
    local doc, version = self:_read()
    local new <const> = doc and rendezvous_state.leave(doc, self:_member(doc), reason)
    done, message = doc ~= nil or nil, doc == nil and version or nil
    if new then done, message = self.records:write(new, version) end
  end
  self:_close_round()
  self:_forget()
  if not done then return nil, message end
  return true
end

return Rendezvous
