--- stdlib/elastic/rendezvous_state.lua: the protocol by which the launchers of a job agree on its
--- rounds, as pure functions: from the job's document and the hosts that are there to the next
--- document.
--
-- A round is a world of ranks with a number, which only grows. The document has one of three
-- statuses: "waiting" (between two rounds: `number` and the members are of the last one),
-- "running", "closed" (for good). It is changed by compare-and-set alone, so of two that change it
-- at once one begins again from what the other wrote. The members of a round never change; they are
-- apart from the document, which every host reads at each change: there may be thousands of both.
-- Hosts write what only they know into a key of their own, which goes with their lease: `after`,
-- the last round of which all their ranks have ended, and `done`, the last one of which all ended
-- well. The leader, one of the hosts, puts the document and those keys together; the others only
-- add that a rank of theirs failed or that they leave. Nothing here depends on which host leads, on
-- clocks, or on the order in which hosts look.
--
-- A member of a round that is alive takes part in the decision on the next one only when its ranks
-- have ended, and the next round waits for that: no two rounds have ranks that run on hosts that
-- reach the store. A launcher that was started again on a host is not the one that was a member:
-- `launch` tells them apart.
local rendezvous_state = {}

local REPORTS <const> = 16 -- failures of one round that are remembered
local NAMES <const> = 8 -- hosts of a round whose names the document has

local function copy(row, changes)
  local new <const> = {}
  for key, value in next, row do new[key] = value end
  for key, value in next, changes do new[key] = value end
  return new
end

--- The document of a job that had no round yet, or whose store lost it in round `number` with this
--- seed.
function rendezvous_state.new(number, seed)
  return { status = "waiting", number = number or -1, hosts = 0, restarts = 0, seed = seed,
           reason = number and "the store has lost the state of the job" or "",
           kind = number and "lost" or "", failures = {}, last_failures = {} }
end

local function close(doc, status, message)
  return copy(doc, { status = "closed", result = { status = status, message = message } })
end

local function stop(doc, kind, reason, ...)
  return copy(doc, { status = "waiting", kind = kind, reason = reason:format(...) })
end

-- Hosts that are not members, in the order in which they came; those of a round that the store has
-- lost in the order of that round, before others.
local function newcomers(doc, members, hosts)
  local launch_of <const>, list = {}, {}
  for _, member in ipairs(members) do launch_of[member.id] = member.launch end
  for _, host in next, hosts do
    if launch_of[host.id] ~= host.launch then list[#list + 1] = host end
  end
  local function place(host)
    return doc.kind == "lost" and host.after == doc.number and host.index or math.huge
  end
  table.sort(list, function(a, b)
    if place(a) ~= place(b) then return place(a) < place(b) end
    if a.version ~= b.version then return a.version < b.version end
    return a.id < b.id
  end)
  return list
end

-- The document after a round that runs has ended; nil while it goes on.
local function end_round(doc, members, view)
  local done = 0
  for _, member in ipairs(members) do
    local host <const> = view.hosts[member.id]
    if not host then return stop(doc, "gone", "%s has gone", member.title) end
    if host.launch ~= member.launch then
      return stop(doc, "gone", "the launcher of %s was started again", member.title)
    elseif host.after >= doc.number then
      return stop(doc, "gone", "%s has dropped out of round %d", member.title, doc.number)
    elseif host.done == doc.number then
      done = done + 1
    end
  end
  if done == #members then return close(doc, 0, "") end
  local new <const> = newcomers(doc, members, view.hosts)
  -- Ranks that have ended well cannot stop at a boundary: the round is at its end.
  if done > 0 or #new == 0 or #members >= view.max then return nil end
  if not view.settled and #members + #new < view.max then return nil end
  return stop(doc, "come", #new == 1 and "host %s has come" or "host %s and %d others have come",
    new[1].name, #new - 1)
end

-- Whether a failure of the same rank at the same step is in a list, with the same form of message.
local function is_among(failure, others, form)
  for _, other in ipairs(others) do
    if other.rank == failure.rank and other.step == failure.step and form(other) == form(failure)
    then return true end
  end
  return false
end

local function exactly(failure) return failure.message end

-- In another round the numbers in a message may differ: that of the run's folder (version_3), of a
-- port, of a process.
local function without_numbers(failure)
  return failure.step and failure.message:gsub("%d+", "0") or failure.message
end

-- The document that ends a job because of the failures of its last round; nil: it may go on.
local function give_up(doc, view)
  for _, failure in ipairs(doc.failures) do
    -- At which step a rank was killed is not known.
    if not failure.killed and is_among(failure, doc.last_failures, without_numbers) then
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
local function candidates(doc, members, view)
  local list <const>, kept, taken = {}, 0, {}
  for _, member in ipairs(members) do
    local host <const> = view.hosts[member.id]
    if host and host.launch == member.launch then
      if host.after < doc.number then return nil end
      kept = kept + 1
    end
    if host then list[#list + 1], taken[member.id] = host, true end
  end
  for _, host in ipairs(newcomers(doc, members, view.hosts)) do
    if not taken[host.id] then list[#list + 1] = host end
  end
  return list, kept, kept == #members
end

-- The first hosts of a list as members of a round, at most `most`: {id, launch, title = "host b",
-- with its id where another one has the same name, slots, index, first_rank}; the number of ranks.
local function members_of(hosts, most)
  local members <const>, same, ranks = {}, {}, 0
  for k = 1, math.min(#hosts, most) do same[hosts[k].name] = (same[hosts[k].name] or 0) + 1 end
  for k = 1, math.min(#hosts, most) do
    local host <const> = hosts[k]
    members[k] = { id = host.id, launch = host.launch, slots = host.slots, index = k,
      first_rank = ranks, title = same[host.name] == 1 and "host " .. host.name
        or ("host %s (%s)"):format(host.name, host.id) }
    ranks = ranks + host.slots
  end
  return members, ranks
end

-- The document of the next round and its members; the first alone where the job ends, nil while
-- neither can be.
local function form(doc, last_members, view)
  local list <const>, kept, all = candidates(doc, last_members, view)
  if not list then return nil end
  local counts <const> = #doc.failures > 0 and all
  local over <const> = counts and give_up(doc, view)
  if over then return over end
  local first <const> = kept == 0
  if #list < view.min then return nil end
  if (first or doc.kind == "lost") and #list < view.max and not view.settled then return nil end
  local members <const>, world_size = members_of(list, view.max)
  local number, names = doc.number, {}
  for _, host in ipairs(list) do number = math.max(number, host.after) end
  for k = 1, math.min(#members, NAMES) do names[k] = list[k].name end
  return { status = "running", number = number + 1, hosts = #members, names = names,
           world_size = world_size, address = list[1].address, port = list[1].port,
           reason = doc.reason, kind = doc.kind, seed = doc.seed or view.seed, failures = {},
           restarts = first and 0 or doc.restarts + (counts and 1 or 0),
           last_failures = first and {} or counts and doc.failures or doc.last_failures }, members
end

--- What the leader writes in place of the document, and of a new round its members; nil: it stays.
---@param members table those of the document's round, in the order of their ranks
---@param view table {hosts = {[id] = {id, launch, name, ..., after, done, version}}: those whose
--- lease runs; min, max, max_restarts; settled: whether nobody has come for a while}
function rendezvous_state.next(doc, members, view)
  if doc.status == "running" then return end_round(doc, members, view) end
  if doc.status == "waiting" then return form(doc, members, view) end
  return nil
end

--- The document with the failure of a rank of round `number` on a host; nil where it changes
--- nothing: that round is not the last one, or the job is closed.
---@param member table|nil the host as a member of the document's round
---@param report table {rank =, step =, message =, killed = whether a signal ended it}
function rendezvous_state.report(doc, member, number, report)
  if doc.status == "closed" or doc.number ~= number or not member then return nil end
  local text <const> = ("rank %d on %s failed: %s"):format(report.rank, member.title,
    report.message)
  local failure <const> = { rank = report.rank, step = report.step, message = report.message,
                            killed = report.killed, text = text }
  if doc.status == "running" then
    return copy(stop(doc, "failed", "%s", text), { failures = { failure } })
  end
  if #doc.failures >= REPORTS or is_among(failure, doc.failures, exactly) then return nil end
  local failures <const> = table.move(doc.failures, 1, #doc.failures, 1, {})
  failures[#failures + 1] = failure
  return copy(doc, { failures = failures })
end

--- The document when a host, this member (nil: it is none), leaves its round; nil where it is in
--- none that runs.
function rendezvous_state.leave(doc, member, reason)
  if doc.status ~= "running" or not member then return nil end
  return stop(doc, "left", "%s leaves: %s", member.title, reason)
end

--- The round that a host, whose ranks of round `after` have ended, is to run: {number =, table =,
--- hosts = how many, names = of the first of them, address =, port = of that of rank 0, index =
--- from 1, slots =, first_rank =, world_size =, reason =, restarts =, seed =}; {ended = true,
--- status =, message =} of a closed job; nil: it waits.
---@param member table|nil the host as a member of the document's round
function rendezvous_state.assignment(doc, member, after)
  if doc.status == "closed" then
    return { ended = true, status = doc.result.status, message = doc.result.message }
  end
  if doc.status ~= "running" or not member or doc.number <= after then return nil end
  return { number = doc.number, table = doc.table, hosts = doc.hosts, names = doc.names,
           address = doc.address, port = doc.port, index = member.index, slots = member.slots,
           first_rank = member.first_rank, world_size = doc.world_size, reason = doc.reason,
           restarts = doc.restarts, seed = doc.seed }
end

--- Why a round that a host has joined is over, of which kind that is: "gone", "come", "failed",
--- "left", "lost" or "ended", and whether a signal has ended a rank of it; nil while it goes on.
function rendezvous_state.over(doc, round)
  if doc.status == "closed" then return "ended", "ended" end
  if doc.status == "running" and doc.table == round.table then return nil end
  local failure <const> = doc.failures[1]
  return doc.reason, doc.kind, failure ~= nil and failure.killed == true
end

return rendezvous_state
