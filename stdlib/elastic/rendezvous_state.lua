--- stdlib/elastic/rendezvous_state.lua: the protocol by which the launchers of a job agree on its
--- rounds, as pure functions: from the job's document and the hosts that are there to the next
--- document.
--
-- A round is a world of ranks with a number, which only grows. The document has one of three
-- statuses: "waiting" (between two rounds: `number` and `members` are of the last one), "running",
-- "closed" (for good). It is changed by compare-and-set alone, so of two that change it at once one
-- begins again from what the other wrote. Hosts write what only they know into a key of their own,
-- which goes with their lease: `after`, the last round of which all their ranks have ended, and
-- `done`, the last one of which all ended well. The leader, one of the hosts, puts the document and
-- those keys together; the others only add that a rank of theirs failed or that they leave. Nothing
-- here depends on which host leads, on clocks, or on the order in which hosts look.
--
-- A member of a round that is alive takes part in the decision on the next one only when its ranks
-- have ended, and the next round waits for that: no two rounds have ranks that run on hosts that
-- reach the store. A launcher that was started again on a host is not the one that was a member:
-- `launch` tells them apart.
local rendezvous_state = {}

local REPORTS <const> = 16 -- failures of one round that are remembered

local MEMBER <const> = { "id", "launch", "name", "address", "port", "slots" }

local function copy(row, changes)
  local new <const> = {}
  for key, value in next, row do new[key] = value end
  for key, value in next, changes do new[key] = value end
  return new
end

--- The document of a job that had no round yet, or whose store lost it in round `number` with these
--- members and this seed.
function rendezvous_state.new(number, members, seed)
  return { status = "waiting", number = number or -1, members = members or {}, restarts = 0,
           seed = seed, reason = number and "the store has lost the state of the job" or "",
           kind = number and "lost" or "", failures = {}, last_failures = {} }
end

-- Positions of members by their launchers, of each list of members: there may be thousands.
local positions <const> = setmetatable({}, { __mode = "k" })

-- The position of a host among the members; nil where it is none.
local function find(doc, host)
  local known = positions[doc.members]
  if not known then
    known = {}
    for k, member in ipairs(doc.members) do known[member.launch] = k end
    positions[doc.members] = known
  end
  local k <const> = known[host.launch]
  return k and doc.members[k].id == host.id and k or nil
end

-- "host b", with its id where another member has the same name.
local function title(doc, host)
  local same = 0
  for _, member in ipairs(doc.members) do
    if member.name == host.name and member.id ~= host.id then same = same + 1 end
  end
  return same > 0 and ("host %s (%s)"):format(host.name, host.id) or "host " .. host.name
end

local function close(doc, status, message)
  return copy(doc, { status = "closed", result = { status = status, message = message } })
end

local function stop(doc, kind, reason, ...)
  return copy(doc, { status = "waiting", kind = kind, reason = reason:format(...) })
end

-- Hosts that are not members, in the order in which they came.
local function newcomers(doc, hosts)
  local list <const> = {}
  for _, host in next, hosts do
    if not find(doc, host) then list[#list + 1] = host end
  end
  table.sort(list, function(a, b)
    if a.version ~= b.version then return a.version < b.version end
    return a.id < b.id
  end)
  return list
end

-- The document after a round that runs has ended; nil while it goes on.
local function end_round(doc, view)
  local done = 0
  for _, member in ipairs(doc.members) do
    local host <const> = view.hosts[member.id]
    if not host then return stop(doc, "gone", "%s has gone", title(doc, member)) end
    if host.launch ~= member.launch then
      return stop(doc, "gone", "the launcher of %s was started again", title(doc, member))
    elseif host.after >= doc.number then
      return stop(doc, "gone", "%s has dropped out of round %d", title(doc, member), doc.number)
    elseif host.done == doc.number then
      done = done + 1
    end
  end
  if done == #doc.members then return close(doc, 0, "") end
  local new <const> = newcomers(doc, view.hosts)
  -- Ranks that have ended well cannot stop at a boundary: the round is at its end.
  if done > 0 or #new == 0 or #doc.members >= view.max then return nil end
  if not view.settled and #doc.members + #new < view.max then return nil end
  return stop(doc, "come", #new == 1 and "%s has come" or "%s and %d others have come",
    title({ members = new }, new[1]), #new - 1)
end

local function is_same(failure, others)
  for _, other in ipairs(others) do
    if other.rank == failure.rank and other.step == failure.step
      and other.message == failure.message then return true end
  end
  return false
end

-- The document that ends a job because of the failures of its last round; nil: it may go on.
local function give_up(doc, view)
  for _, failure in ipairs(doc.failures) do
    -- At which step a rank was killed is not known.
    if not failure.killed and is_same(failure, doc.last_failures) then
      local at <const> = failure.step and (" at step %d"):format(failure.step) or ""
      return close(doc, 1, ("%s: for the second time%s"):format(failure.text, at))
    end
  end
  if doc.restarts < view.max_restarts then return nil end
  local count <const> = view.max_restarts == 0 and "" or (" (after %d restart%s)"):format(
    view.max_restarts, view.max_restarts == 1 and "" or "s")
  return close(doc, 1, doc.failures[1].text .. count)
end

-- The hosts of the next round in the order of their ranks: those of the last one keep theirs; how
-- many of its launchers are still there, and whether all are. Nil while ranks of one still run.
local function candidates(doc, view)
  local list <const>, kept, taken = {}, 0, {}
  for _, member in ipairs(doc.members) do
    local host <const> = view.hosts[member.id]
    if host and host.launch == member.launch then
      if host.after < doc.number then return nil end
      kept = kept + 1
    end
    if host then list[#list + 1], taken[member.id] = host, true end
  end
  for _, host in ipairs(newcomers(doc, view.hosts)) do
    if not taken[host.id] then list[#list + 1] = host end
  end
  return list, kept, kept == #doc.members
end

-- The document of the next round; nil while it cannot begin.
local function form(doc, view)
  local list <const>, kept, all = candidates(doc, view)
  if not list then return nil end
  local counts <const> = #doc.failures > 0 and all
  local over <const> = counts and give_up(doc, view)
  if over then return over end
  local first <const> = kept == 0
  if #list < view.min then return nil end
  if (first or doc.kind == "lost") and #list < view.max and not view.settled then return nil end
  local members <const>, number = {}, doc.number
  for k, host in ipairs(list) do
    number = math.max(number, host.after)
    if k <= view.max then members[k] = {} end
    for _, key in ipairs(members[k] and MEMBER or {}) do members[k][key] = host[key] end
  end
  return { status = "running", number = number + 1, members = members, reason = doc.reason,
           seed = doc.seed or view.seed,
           kind = doc.kind, failures = {},
           restarts = first and 0 or doc.restarts + (counts and 1 or 0),
           last_failures = first and {} or counts and doc.failures or doc.last_failures }
end

--- What the leader writes in place of the document; nil: it stays.
---@param view table {hosts = {[id] = {id, launch, name, ..., after, done, version}}: those whose
--- lease runs; min, max, max_restarts; settled: whether nobody has come for a while}
function rendezvous_state.next(doc, view)
  if doc.status == "running" then return end_round(doc, view) end
  if doc.status == "waiting" then return form(doc, view) end
  return nil
end

--- The document with the failure of a rank of round `number` on `host`; nil where it changes
--- nothing: that round is not the last one, or the job is closed.
---@param report table {rank =, step =, message =, killed = whether a signal ended it}
function rendezvous_state.report(doc, host, number, report)
  if doc.status == "closed" or doc.number ~= number or not find(doc, host) then return nil end
  local text <const> = ("rank %d on %s failed: %s"):format(report.rank, title(doc, host),
    report.message)
  local failure <const> = { rank = report.rank, step = report.step, message = report.message,
                            killed = report.killed, text = text }
  if doc.status == "running" then
    return copy(stop(doc, "failed", "%s", text), { failures = { failure } })
  end
  if #doc.failures >= REPORTS or is_same(failure, doc.failures) then return nil end
  local failures <const> = table.move(doc.failures, 1, #doc.failures, 1, {})
  failures[#failures + 1] = failure
  return copy(doc, { failures = failures })
end

--- The document when `host` leaves its round; nil where it is in none that runs.
function rendezvous_state.leave(doc, host, reason)
  if doc.status ~= "running" or not find(doc, host) then return nil end
  return stop(doc, "left", "%s leaves: %s", title(doc, host), reason)
end

--- The round that `host`, whose ranks of round `after` have ended, is to run: {number =, hosts =,
--- index =, first_rank =, world_size =, reason =, restarts =}; {ended = true, status =, message =}
--- of a closed job; nil: it waits.
function rendezvous_state.assignment(doc, host, after)
  if doc.status == "closed" then
    return { ended = true, status = doc.result.status, message = doc.result.message }
  end
  local index <const> = find(doc, host)
  if doc.status ~= "running" or not index or doc.number <= after then return nil end
  local first_rank, world_size = 0, 0
  for k, member in ipairs(doc.members) do
    if k < index then first_rank = first_rank + member.slots end
    world_size = world_size + member.slots
  end
  return { number = doc.number, hosts = doc.members, index = index, first_rank = first_rank,
           world_size = world_size, reason = doc.reason, restarts = doc.restarts,
           seed = doc.seed }
end

--- The document as it is stored: of each member a list instead of a table with names, since there
--- may be thousands.
function rendezvous_state.pack(doc)
  local members <const> = {}
  for k, member in ipairs(doc.members) do
    members[k] = {}
    for i, name in ipairs(MEMBER) do members[k][i] = member[name] or false end
  end
  return copy(doc, { members = members })
end

--- The reverse.
function rendezvous_state.unpack(doc)
  local members <const> = {}
  for k, row in ipairs(doc.members) do
    members[k] = {}
    for i, name in ipairs(MEMBER) do members[k][name] = row[i] or nil end
  end
  return copy(doc, { members = members })
end

--- Whether the last round has ended, and `host` was a member of it.
function rendezvous_state.has_ended(doc, host)
  return doc.status == "waiting" and find(doc, host) ~= nil
end

--- Why round `number` is over, and of which kind that is: "gone", "come", "failed", "left", "lost"
--- or "ended", and whether a signal has ended a rank of it; nil while it goes on.
function rendezvous_state.over(doc, host, number)
  if doc.status == "closed" then return "ended", "ended" end
  if doc.status == "running" and doc.number == number and find(doc, host) then return nil end
  local failure <const> = doc.failures[1]
  return doc.reason, doc.kind, failure ~= nil and failure.killed == true
end

return rendezvous_state
