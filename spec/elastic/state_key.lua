-- spec/elastic/state_key.lua: when two states of the model of the rendezvous are the same: the
-- texts of a state have what the protocol's decisions can depend on, and nothing else.
--
-- Left out or replaced, with the reason why no decision depends on it:
--
--   numbers of rounds   the protocol compares them with the document's number alone, which only
--                       grows: each is this number ("n") or an earlier one ("o")
--   versions            of hosts' keys only the order counts, of the document's only whether it is
--                       still the one that was read: what was read before is "stale", and its
--                       contents do not matter, as what is written because of it is refused
--   leases              each belongs to one launcher, whose lease runs or does not
--   launchers           by how many later launchers of their host there were
--   texts for readers, addresses, what an object has only to ask less often
--
-- A host in the middle of a turn waits to make a change; what it does then follows from its fields,
-- that change and, where it has read the document before that, the document.
local c = require "ltrain.c"
local JobRecords = require "ltrain.elastic.JobRecords"

local state_key = {}

local STATE <const>, LEADER <const> = "ltrain/j/round/state", "ltrain/j/round/leader"
-- The fields of an object that are known here.
local FIELDS <const> = { lease = true, published = true, round = true, after = true,
  done_round = true, last_round = true, failure = true, rival = true, rival_since = true,
  unpublished = true }

local function decode(text) return c.io.json_decode(text, { plain = true }) end

-- A function of a text whose results are remembered.
local function remembered(of)
  local known <const> = setmetatable({}, { __mode = "v" })
  return function(text)
    known[text] = known[text] or of(text)
    return known[text]
  end
end

local decoded <const> = remembered(decode)

-- "\1a0": launcher a1 while host a has had no later one.
local function launcher(state, launch)
  local id <const>, life = launch:match "^(%a)(%d+)$"
  for _, host in ipairs(state.hosts) do
    if host.id == id then return ("\1%s%d"):format(id, host.lives - tonumber(life)) end
  end
end

local function failures_text(list)
  local parts <const> = {}
  for k, failure in ipairs(list) do parts[k] = failure.rank end
  table.sort(parts)
  return table.concat(parts, ",")
end

local launches <const> = {} -- by the name of a table, which has a hash of it

--- The launchers of a document's round, in the order of their ranks.
function state_key.launches(data, doc)
  if not doc.table then return {} end
  if launches[doc.table] then return launches[doc.table] end
  local store <const>, list = {}, {}
  function store.list(_, prefix)
    local found <const> = {}
    for key, row in next, data.keys do
      if key:sub(1, #prefix) == prefix then found[key] = row end
    end
    return found
  end
  for k, member in ipairs(JobRecords(store, "j"):members(doc)) do list[k] = member.launch end
  launches[doc.table] = list
  return list
end

local function members_text(state, data, doc)
  local names <const> = {}
  for k, launch in ipairs(state_key.launches(data, doc)) do names[k] = launcher(state, launch) end
  return table.concat(names)
end

-- A document, whose number is `number` or later.
local function doc_text(state, data, doc, number)
  if doc.status == "closed" then return "closed" .. doc.result.status end
  return ("%s+%d %d %s /%s/%s"):format(doc.status, doc.number - number, doc.restarts,
    members_text(state, data, doc), failures_text(doc.failures), failures_text(doc.last_failures))
end

local function age(value, number)
  return value == number and "n" or value < number and "o" or "later"
end

local function fields_text(state, fields, number, row)
  for name in next, fields do
    assert(FIELDS[name], name)
  end
  local round <const>, lease = fields.round, fields.lease
  return ("%s%s%s%s%s%s%s%s"):format(
    lease and (state.data.leases[lease] and "L" or "l") or "-",
    fields.published and (fields.published == row and "P" or "p") or "-",
    round and (round.ended and "e" or age(round.number, number) .. round.first_rank) or "-",
    age(fields.after, number),
    fields.done_round == number and "D" or fields.done_round >= 0 and "d" or "-",
    fields.failure and age(fields.failure.round, number) .. fields.failure.rank or "-",
    fields.rival and launcher(state, fields.rival) or "", fields.unpublished and "u" or "")
end

-- What the turn of a host waits to do.
local function turn_text(state, host, number)
  local turn <const> = host.turn
  local key <const>, value, version = turn.key, turn.value, turn.version
  local text <const> = turn.name .. (turn.is_leader and "!" or "") .. turn.request
  local row <const> = state.data.keys[STATE]
  if key == STATE then
    local is_current <const> = version == (row and row.version)
    return text .. (is_current and doc_text(state, state.data, decoded(value), number) or "stale")
  elseif key == LEADER then
    local read <const> = turn.document
    local is_over <const> = read and decoded(read.value).number <= turn.fields.after
    local leader <const> = text .. (is_over and "leader-" or "leader+")
    if (read and read.version) == (row and row.version) then return leader end
    return leader .. "stale"
      .. (read and doc_text(state, state.data, decoded(read.value), number) or "")
  end
  return text
end

local function text_of_host(state, host, number)
  local text = host.phase .. (host.is_done and "." or "")
  if not host.turn then
    return next(host.fields) and text .. fields_text(state, host.fields, number, host.row) or text
  end
  return text .. fields_text(state, host.turn.fields, number, host.turn.row)
    .. turn_text(state, host, number)
end

-- What the store has of a host, in the order in which it was set.
local function rows_text(state, number)
  local rows <const>, parts = {}, {}
  for key, row in next, state.data.keys do
    if key:find("hosts/", 1, true) then rows[#rows + 1] = row end
  end
  table.sort(rows, function(x, y) return x.version < y.version end)
  for k, row in ipairs(rows) do
    local host <const> = decoded(row.value)
    parts[k] = launcher(state, host.launch) .. age(host.after, number)
      .. (host.done == number and "D" or "-")
  end
  return table.concat(parts)
end

--- The texts of a state: of the store, and a list of those of its hosts, or only of host `only`. In
--- them host a is "\1a".
function state_key.texts(state, only)
  local row <const>, data = state.data.keys[STATE], state.data
  local doc <const> = row and decoded(row.value)
  local number <const> = doc and doc.number or -1
  local leader <const>, own = data.keys[LEADER], {}
  for k = only or 1, only or #state.hosts do
    own[k] = text_of_host(state, state.hosts[k], number)
  end
  return ("%s|%s|%s"):format(doc and doc_text(state, data, doc, number) or "",
    rows_text(state, number), leader and launcher(state, decoded(leader.value).launch) or ""), own
end

return state_key
