--- stdlib/elastic/Agent.lua: the agent of a host, `ltrain launch`: joins the rendezvous, starts the
--- ranks of each round, watches them, and ends them when the round is over.
--
-- A world of ranks never changes: when a rank fails or hosts come and go, all ranks end, and the
-- hosts that are there start new ones. What ends a round is noticed here (a rank of this host has
-- ended, the launcher got a signal) or reported by the rendezvous. Ranks of one world all end when
-- one fails, so what a rank ended with may be the consequence of a failure on another host: an
-- agent then waits for that host's report before it reports a failure itself.
local Ranks = require "ltrain.elastic.Ranks"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local restarts = require "ltrain.core.restarts"

local Agent = class.extend(nil, "Agent")

local clock <const> = c.runtime.clock
local process <const> = c.runtime.process

local LOOK_SECONDS <const> = 0.1 -- between looks at the ranks and the rendezvous
local ALONE_SECONDS <const> = 0.8 -- ranks that learn of a failure by themselves have so long to end
local TERM_SECONDS <const> = 1.0 -- from SIGTERM to SIGKILL
-- The same where a rank was killed, or a host has gone: the others would take 0.8 s to be sure of
-- it, and what they have that is not in a snapshot or checkpoint is computed again anyway.
local KILLED_SECONDS <const> = 0.05
local EXPLAIN_SECONDS <const> = 15 -- in which a failure on another host is reported: above a lease
local CLOSE_SECONDS <const> = 5 -- that a job has to close after a signal, when all ranks ended well
local STEADY_SECONDS <const> = 60 -- of a round, whose failure is not one of a crash loop
local LONGEST_BACKOFF <const> = 30 -- seconds
local QUIET_SECONDS <const> = 3 -- of waiting for a round, until it is said what for
local REPEAT_SECONDS <const> = 60 -- until it is said again

local STATUS <const> = { SIGHUP = 129, SIGINT = 130, SIGUSR1 = 138, SIGTERM = 143 }

-- What happens to ranks when a round ends for a reason of this kind: they stop between two batches,
-- or at once, as their world is broken.
local AT_BOUNDARY <const> = { come = true, left = true, lost = true }

--- o: {rendezvous =, job = id, name = of this host, command = words that run a rank, folder = for
--- files of ranks, grace = seconds to stop between two batches, join_timeout = seconds to wait for
--- a round, max_restarts =, memory = of snapshots (snapshot_memory.lua) or nil, discovery = how
--- many ranks this host has at a time (HostDiscovery.lua) or nil, signals = function() -> the name
--- of the signal that asked for the end or nil, whether Ctrl-C came after it;
--- say = function(line)}
function Agent:init(o)
  for key, value in next, o do self[key] = value end
  self.restarts, self.quick, self.progress = 0, 0, 0
end

-- Remembered for the closing line.
local function note_failure(self, text)
  self.first = self.first or text
end

local function text_of(self, failure)
  local at <const> = failure.step and (" at step %d"):format(failure.step) or ""
  return ("rank %d on host %s failed%s: %s"):format(failure.rank, self.name, at, failure.message)
end

-- One round.

local function begin(w, phase, seconds, term_seconds)
  w.phase, w.due, w.next = phase, clock() + seconds, "TERM"
  w.term_seconds = term_seconds or TERM_SECONDS
end

-- USR1: the next round begins from a snapshot. TERM: there may be none, so a checkpoint is written.
local function stop_at_boundary(self, w, signal)
  w.ranks:signal(signal)
  begin(w, "stop", self.grace)
end

local function report(self, w, failure)
  w.failure = failure
  note_failure(self, text_of(self, failure))
  self.rendezvous:failed { rank = failure.rank, step = failure.step, message = failure.message,
    killed = failure.killed }
end

-- A rank has ended.
local function note_end(self, w, one)
  if one.status == 0 or w.phase ~= "run" then
    local failure <const> = w.phase == "end" and not w.reason and not w.failure
      and w.ranks:failure_of(one)
    if failure and failure.sure then report(self, w, failure) end
  elseif one.status == restarts.STOPPED then
    begin(w, "stop", self.grace) -- asked on another host, whose ranks all have agreed with
  else
    local failure <const> = w.ranks:failure_of(one)
    begin(w, "end", failure.killed and 0 or ALONE_SECONDS, failure.killed and KILLED_SECONDS)
    if failure.sure then report(self, w, failure) end
  end
end

local function look_at_signals(self, w)
  local name <const>, again = self.signals()
  if name and not w.asked then
    w.asked = name
    if w.phase == "run" then
      self.say(("%s: the ranks save and stop at the end of their batch, within %g s; Ctrl-C ends "
        .. "them at once"):format(name, self.grace))
      stop_at_boundary(self, w, "TERM")
    end
  end
  if again and not w.killed then
    w.killed = true
    w.ranks:signal "KILL"
  end
end

local function look_at_rendezvous(self, w)
  local reason <const>, kind, killed = self.rendezvous:poll()
  if not reason or w.reason or w.failure then return end
  w.reason, w.kind = reason, kind
  if w.phase ~= "run" then return end
  if AT_BOUNDARY[kind] then return stop_at_boundary(self, w, "USR1") end
  begin(w, "end", 0, (killed or kind == "gone") and KILLED_SECONDS)
end

-- How many ranks this host is to have, where that differs from what it has; nil: as many.
local function new_ranks(self)
  local ranks <const> = self.discovery and self.discovery:ranks()
  return ranks and ranks ~= self.rendezvous.host.slots and ranks or nil
end

-- The list of hosts gives this host another number of ranks: it leaves, and joins with them.
local function look_at_discovery(self, w)
  local ranks <const> = w.phase == "run" and new_ranks(self)
  if not ranks then return end
  w.moves = ranks == 0 and "it is no longer in the list of hosts"
    or ("the list of hosts gives it %d rank%s"):format(ranks, ranks == 1 and "" or "s")
  stop_at_boundary(self, w, "USR1")
end

-- Ranks that have not ended in time get the next signal.
local function press(w)
  if not w.due or clock() < w.due then return end
  w.ranks:signal(w.next)
  w.next, w.due = "KILL", clock() + w.term_seconds
end

local function run_round(self, round)
  local w <const> = { round = round, ranks = Ranks(round, self), phase = "run" }
  while w.ranks.left > 0 do
    local until_due <const> = math.max(0, (w.due or math.huge) - clock())
    local one <const> = w.ranks:wait(math.min(LOOK_SECONDS, until_due))
    if one then note_end(self, w, one) end
    look_at_signals(self, w)
    look_at_rendezvous(self, w)
    look_at_discovery(self, w)
    press(w)
  end
  return w
end

-- Waits, with the lease kept, until the round is over for all; returns the reason and its kind, nil
-- after `seconds`; `leaves`: also when a signal asks for the end.
local function wait_for_reason(self, seconds, leaves)
  local until_when = clock() + seconds
  repeat
    local reason <const>, kind = self.rendezvous:poll()
    if reason then return reason, kind end
    if leaves and self.signals() then
      until_when, leaves = math.min(until_when, clock() + CLOSE_SECONDS), false
    end
    process.wait_any({}, LOOK_SECONDS)
  until clock() >= until_when
end

-- What a round without a reason or a sure failure ended with: another host's failure, or one here.
local function explain(self, w)
  if w.round.hosts > 1 then w.reason, w.kind = wait_for_reason(self, EXPLAIN_SECONDS, true) end
  if w.reason then return end
  report(self, w, w.ranks.failed and { rank = w.round.first_rank, message = w.ranks.failed }
    or w.ranks:first_failure())
end

-- A round is over: says why, and what comes next. Returns true where this host leaves the job.
local function conclude(self, w)
  if not w.ranks.failed and w.ranks:all(0) then
    self.rendezvous:done()
    w.reason, w.kind = wait_for_reason(self, math.huge, true)
    return not w.reason and self.signals() ~= nil
  elseif w.asked then
    return true
  elseif w.moves and not w.failure then
    self.rendezvous:leave(w.moves)
    w.reason, w.kind = ("host %s leaves: %s"):format(self.name, w.moves), "left"
    return false
  end
  if not w.reason and not w.failure then explain(self, w) end
  if w.kind == "failed" then note_failure(self, w.reason) end
  return false
end

-- Between rounds.

-- The next round has so many ranks on this host.
local function have_ranks(self, ranks)
  self.rendezvous.host.slots = ranks
  if not self.memory then return end
  local grown <const>, message = self.memory:grow(ranks)
  if not grown then
    self.say("no snapshots in memory: " .. message)
    self.memory = nil
  end
end

-- Waits until the list of hosts, if there is one, has this one: true; the end of a job that was
-- over before; nil where a signal came.
local function be_listed(self)
  local look, said = clock() + QUIET_SECONDS, false
  while self.discovery do
    local ranks <const> = self.discovery:ranks() or 0
    if self.signals() then return nil end
    if ranks > 0 then
      have_ranks(self, ranks)
      return true
    end
    if clock() >= look then
      if not said then self.say "waits until the list of hosts has this one" end
      look, said = clock() + 1, true
      local over <const> = self.rendezvous:ended()
      if over then return over end
    end
    process.wait_any({}, LOOK_SECONDS)
  end
  return true
end

-- Waits for the next round; nil where a signal came before it, or nil and a message; false where
-- the number of ranks of this host has changed before it.
local function join(self)
  local listed <const> = be_listed(self)
  if listed ~= true then return listed end
  local began <const>, waits_for, said = clock(), nil, nil
  local due = began + QUIET_SECONDS
  local round <const> = self.rendezvous:join(function(text)
    local now <const> = clock()
    if self.signals() or new_ranks(self) then return true end
    waits_for = text or waits_for or "the other hosts"
    if now >= due then
      self.say(waits_for)
      said, due = waits_for, now + REPEAT_SECONDS
    end
    return now - began >= self.join_timeout
  end)
  if round or self.signals() then return round end
  if new_ranks(self) then
    self.rendezvous:leave "the list of hosts has changed"
    return false
  end
  self.rendezvous:leave "the time to join is over"
  return nil, ("no round within %g s (--join_timeout)%s"):format(self.join_timeout,
    waits_for ~= said and ": " .. waits_for or "")
end

-- Whether a round that has failed is not one of a crash loop: it was long, or its fits came further
-- than those before.
local function was_useful(self, seconds_of_round)
  local before <const> = self.progress
  if self.memory then self.progress = self.memory:progress() end
  return seconds_of_round >= STEADY_SECONDS or self.progress > before
end

-- The first restart is at once; those of a crash loop wait longer each.
local function back_off(self, w, seconds_of_round)
  if not (w.failure or w.kind == "failed") then return end
  self.quick = was_useful(self, seconds_of_round) and 1 or self.quick + 1
  if self.quick < 2 then return end
  local seconds <const> = math.min(2.0 ^ (self.quick - 2), LONGEST_BACKOFF)
  self.say(("waits %g s: %d rounds in a row have failed without a new snapshot"):format(seconds,
    self.quick))
  local due <const> = clock() + seconds
  while clock() < due and not self.signals() do
    self.rendezvous:poll() -- keeps the lease
    process.wait_any({}, LOOK_SECONDS)
  end
end

local function say_end(self, w)
  if w.kind == "ended" then return end
  self.say(w.failure and text_of(self, w.failure) or w.reason)
end

local function say_begin(self, round)
  local names, more = table.concat(round.names, ", "), round.hosts - #round.names
  if more > 0 then names = ("%s and %d more"):format(names, more) end
  local again <const> = round.restarts > self.restarts
  self.restarts = round.restarts
  self.say(("round %d: %d rank%s on %s%s"):format(round.number, round.world_size,
    round.world_size == 1 and "" or "s", names,
    again and (": restart %d of %d"):format(round.restarts, self.max_restarts) or ""))
end

-- Closing.

local function after_restarts(self)
  local text = self.restarts == 0 and ""
    or (" after %d restart%s"):format(self.restarts, self.restarts == 1 and "" or "s")
  if self.first then text = ("%s; first failure: %s"):format(text, self.first) end
  return text
end

local function left(self, name)
  self.rendezvous:leave(name)
  return STATUS[name] or 1, ("%s: host %s has left the job%s"):format(name, self.name,
    after_restarts(self))
end

local function ended(self, round)
  if round.status == 0 then
    return 0, round.message ~= "" and round.message
      or "the job has ended well" .. after_restarts(self)
  end
  return round.status, ("the job has failed: %s%s"):format(round.message,
    round.message:find(self.first or "", 1, true) and "" or after_restarts(self))
end

-- One round, and what is between it and the next; whether this host leaves the job.
local function take_part(self, round)
  if round.number > 0 or round.hosts > 1 then say_begin(self, round) end
  local began <const> = clock()
  local w <const> = run_round(self, round)
  if conclude(self, w) then return true end
  say_end(self, w)
  back_off(self, w, clock() - began)
  return false
end

--- Runs the job on this host until it ends, or this host leaves it. Returns the exit status and a
--- closing line.
function Agent:run()
  while true do
    local round <const>, message = join(self)
    local name <const> = self.signals()
    if name and not (round and round.ended) then return left(self, name) end
    if round == nil then return 1, message end
    if round and round.ended then return ended(self, round) end
    if round and take_part(self, round) then return left(self, (self.signals())) end
  end
end

return Agent
