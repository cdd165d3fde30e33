-- spec/elastic/model.lua: the rendezvous protocol as a state machine: the states of hosts and of
-- the store, and what can happen in each: every request of each host, and failures between any two
-- of them. exploration.lua goes through all of it.
--
-- The code under test is Rendezvous.lua and what it calls, over the memory store. A host's part is
-- divided into turns (one call of join, poll, failed, done or leave), a turn into steps: a request
-- that changes the store, and those up to the next one that only read. (Reads that follow each
-- other need no steps of their own: what is written on the grounds of an outdated document is
-- refused.) A turn depends on nothing but the object's fields at its start and the answers so far,
-- so a host in the middle of a turn is those fields and answers: to take a step, the turn is run
-- again from its start with the recorded answers, and then continued. States are therefore plain
-- tables that can be copied, compared and continued in every possible way.
--
-- Time stands still: that a lease expires is a step like others, which may happen at any time to a
-- host that has crashed, and as a failure to one that lives (SIGSTOP, a network that is cut).
local c = require "ltrain.c"
local JobRecords = require "ltrain.elastic.JobRecords"
local MemoryStore = require "ltrain.elastic.stores.memory"
local Rendezvous = require "ltrain.elastic.Rendezvous"
local state_key = require "spec.elastic.state_key"

local model = {}

local STATE <const>, MEMBERS <const> = "ltrain/j/round/state", "ltrain/j/members/"
-- Fields that every object has alike, those that are set anew before they are read, and copies of
-- what the store has.
local STATIC <const> = { store = true, records = true, now = true, host = true, settings = true,
  seconds = true, settle = true, patience = true, keep_every = true, launch = true, kept = true,
  waits = true, count = true, counted = true, settling = true, waiting_since = true,
  unsettled = true, idle = true, leader = true, is_leader = true, place = true,
  members = true }
-- Requests that change what others see: not those of tables of members, which nobody reads before
-- the document names them or when it no longer does.
local WRITES <const> = { put = true, create = true, replace = true, drop = true }
local CHANGES <const> = { put = true, create = true, replace = true, remove = true, drop = true,
  lease = true }

local function copy(value)
  if type(value) ~= "table" then return value end
  local new <const> = {}
  for key, item in next, value do new[key] = copy(item) end
  return new
end

local function never() return 0 end

-- The store of a state, as an object whose changes change the state.
local function store_of(state)
  local store <const> = MemoryStore(never)
  local data <const> = state.data
  data.now, data.log, data.next_expiry = never, {}, math.huge
  store._data = data
  return store
end

-- The same where something is about to be changed: what other states share is copied before. Rows
-- of keys are never changed, only replaced.
local function own_store(state)
  if not state.owns_data then
    local data <const> = { keys = {}, leases = {}, revision = state.data.revision,
                           last_lease = state.data.last_lease }
    for key, row in next, state.data.keys do data.keys[key] = row end
    for id, lease in next, state.data.leases do data.leases[id] = copy(lease) end
    state.data, state.owns_data = data, true
  end
  return store_of(state)
end

local function new_object(options, id, launch)
  return Rendezvous { store = false, job = "j", min = options.min, max = options.max,
    max_restarts = options.max_restarts, settle = 0, lease = 1, keep_every = 0, launch = launch,
    now = never, host = { id = id, name = id, address = id, port = 1, slots = 2 } }
end

-- The object of a host, with fields that may be changed.
local function object_of(options, host, store)
  local launch <const> = host.id .. host.lives
  options.objects = options.objects or {}
  options.objects[launch] = options.objects[launch] or new_object(options, host.id, launch)
  local r <const> = setmetatable({}, Rendezvous)
  for key, value in next, options.objects[launch] do
    if STATIC[key] then r[key] = value end
  end
  for key, value in next, host.fields do r[key] = copy(value) end
  r.store, r.records = store, JobRecords(store, "j")
  return r
end

local function fields_of(r)
  local fields <const> = {}
  for key, value in next, r do
    if not STATIC[key] then fields[key] = copy(value) end
  end
  return fields
end

local turns <const> = {}

function turns.join(r)
  return r:join(function() return true end)
end

function turns.poll(r) return r:poll() end

function turns.failed(r)
  return r:failed { rank = r.round.first_rank, step = 7, message = "boom" }
end

function turns.done(r) return r:done() end

function turns.leave(r) return r:leave "asked" end

-- What a host would set its key to.
local function row_of(r) return c.io.json_encode(r:_row(), { plain = true }) end

-- A turn has come to its change number `at`, before which it waits.
local function wait(turn, r, at, request, key, value, version)
  turn.at, turn.request, turn.key, turn.value = at, request, key, value
  turn.version = request == "replace" and version or nil
  turn.is_leader, turn.fields, turn.row, turn.document = r.is_leader, fields_of(r), row_of(r), nil
  for k = at - 1, 1, -1 do
    local answer <const> = turn.answers[k]
    if answer.name == "list" and answer.key == "ltrain/j/round/" then
      turn.document = answer.values[1][STATE]
      break
    end
  end
end

-- Runs the turn of a host with the recorded answers, and on up to its next change but one;
-- `answer(name, ...)` is called for requests that are not recorded. The object and the results of a
-- turn that has ended, else nil.
local function run_turn(options, host, answer)
  local r, asked, turn = nil, 0, host.turn
  local function request(name, ...)
    asked = asked + 1
    local known = turn.answers[asked]
    if not known then
      local key <const> = ...
      if WRITES[name] and turn.at ~= asked and not tostring(key):find(MEMBERS, 1, true) then
        wait(turn, r, asked, name, ...)
        coroutine.yield()
      end
      known = { name = name, key = key, values = table.pack(answer(name, ...)) }
      turn.answers[asked] = known
    end
    return table.unpack(known.values, 1, known.values.n)
  end
  r = object_of(options, host, setmetatable({}, { __index = function(_, name)
    return function(_, ...) return request(name, ...) end
  end }))
  local results
  local co <const> = coroutine.create(function() results = table.pack(turns[turn.name](r)) end)
  local ok, message = coroutine.resume(co)
  assert(ok, message)
  if coroutine.status(co) == "suspended" then return nil end
  return r, results
end

-- What a turn that has ended means for its host.
local function end_turn(model_state, host, r, results)
  local name <const>, value = host.turn.name, results[1]
  host.fields, host.row, host.turn = fields_of(r), row_of(r), nil
  if name == "join" and value then
    host.phase = value.ended and "closed" or "running"
    model_state.joined = not value.ended and { host = host.id,
      launch = host.id .. host.lives, round = value } or nil
  elseif name == "poll" and value or name == "failed" then
    host.phase = "joining"
  elseif name == "done" then
    host.is_done = true
  elseif name == "leave" then
    host.phase = "left"
  end
  if host.phase ~= "running" then host.is_done = nil end
end

-- Takes one step of a host: begins the turn `name` where it is in none.
local function step(options, state, host, name)
  host.turn = host.turn or { name = name, answers = {} }
  local r, results = run_turn(options, host, function(request, ...)
    if request == "wait" then return true end
    if request == "close" then return nil end
    local store <const> = CHANGES[request] and own_store(state) or store_of(state)
    return store[request](store, ...)
  end)
  if r then end_turn(state, host, r, results) end
end

local function decode(row) return c.io.json_decode(row.value, { plain = true }) end

-- The lease with which a host's key was set, and whether nobody keeps it any more.
local function lease_of(state, host)
  local row <const> = state.data.keys["ltrain/j/hosts/" .. host.id]
  if not row then return nil end
  return row.lease, host.phase == "crashed" or decode(row).launch ~= host.id .. host.lives
end

local function expire(state, lease)
  own_store(state):drop(lease)
end

-- Begins the next life of a host: its launcher was started.
local function start(options, host)
  host.lives, host.phase = (host.lives or 0) + 1, "joining"
  local r <const> = new_object(options, host.id, host.id .. host.lives)
  host.fields, host.row = fields_of(r), row_of(r)
end

--- The first state: n hosts that begin to join. `options`: min, max, max_restarts, and `events`:
--- which there are: crash, expiry, failed, leave (and joins again), done.
function model.begin(n, options)
  local state <const> = { hosts = {},
    data = { keys = {}, leases = {}, revision = 0, last_lease = 0 } }
  for k = 1, n do
    state.hosts[k] = { id = ("abcdef"):sub(k, k) }
    start(options, state.hosts[k])
  end
  return state
end

-- A host that shares nothing that a step changes.
local function copy_of(host)
  local new <const> = {}
  for key, value in next, host do new[key] = value end
  if host.turn then
    new.turn = {}
    for key, value in next, host.turn do new.turn[key] = value end
    new.turn.answers = table.move(host.turn.answers, 1, #host.turn.answers, 1, {})
  end
  return new
end

--- Calls add(next state, what happens, kind) for each thing that can happen to host k. `kind`: nil:
--- it does sooner or later; "failure"; "chance": it may; "done": it does where ranks of another
--- host of its round have ended well. `only` (optional): the one thing that is asked for.
function model.events(options, state, k, add, only)
  local host <const>, allowed = state.hosts[k], options.events
  local function try(text, kind, change)
    if only and only ~= text then return end
    local new <const> = { data = state.data,
                          hosts = table.move(state.hosts, 1, #state.hosts, 1, {}) }
    new.hosts[k] = copy_of(host)
    change(new, new.hosts[k])
    add(new, text, kind)
  end
  local function turn(name, kind)
    try(name, kind, function(new, h) step(options, new, h, name) end)
  end
  if host.phase == "crashed" then
    try("returns", "chance", function(_, h) start(options, h) end)
  elseif host.phase == "left" then
    try("joins again", "chance", function(_, h) h.phase = "joining" end)
  end
  local lease <const>, is_lost = lease_of(state, host)
  if is_lost then
    try("is found to have gone", nil, function(new) expire(new, lease) end)
  end
  if host.turn then
    try("goes on", nil, function(new, h) step(options, new, h) end)
  elseif host.phase == "joining" then
    turn "join"
  elseif host.phase == "running" then
    turn "poll"
    if allowed.done and not host.is_done then turn("done", "done") end
    if allowed.failed and not host.is_done then turn("failed", "failure") end
    if allowed.leave then turn("leave", "failure") end
  end
  if host.phase ~= "joining" and host.phase ~= "running" then return end
  if allowed.crash then
    try("crashes", "failure", function(_, h)
      h.phase, h.turn, h.fields, h.is_done = "crashed", nil, {}, nil
    end)
  end
  if allowed.expiry and lease and not is_lost then
    try("loses its lease", "failure", function(new) expire(new, lease) end)
  end
end

local function document(state)
  local row <const> = state.data.keys[STATE]
  return row and decode(row) or nil
end

--- What is wrong with a state that came after `before`; nil: nothing.
function model.violation(options, before, state)
  local old <const>, doc = document(before), document(state)
  if old and not doc then return "the document has gone" end
  if old and old.status == "closed" and (doc.status ~= "closed"
    or before.data.keys[STATE].version ~= state.data.keys[STATE].version) then
    return "a closed job was changed"
  end
  if doc and old and doc.number < old.number then return "a number went back" end
  if doc and old and doc.number == old.number
    and doc.status ~= "closed" and doc.table ~= old.table then
    return "the members of a round have changed"
  end
  if doc and doc.restarts > options.max_restarts then return "too many restarts" end
  if doc and doc.status == "running" and (doc.hosts < options.min or doc.hosts > options.max)
  then return "a round of " .. doc.hosts .. " hosts" end
  local joined <const> = state.joined
  if joined then
    local round <const> = joined.round
    if not doc or doc.number < round.number then return "a round that is not in the document" end
    if doc.number == round.number and doc.status ~= "closed" then
      if doc.table ~= round.table then return "a host has other members" end
      local launch <const> = state_key.launches(state.data, doc)[round.index]
      if launch ~= joined.launch then return "a host has another's place" end
    end
    if round.world_size ~= 2 * round.hosts or round.first_rank ~= 2 * (round.index - 1) then
      return "wrong ranks"
    end
    for _, host in ipairs(before.hosts) do
      if host.id == joined.host and host.fields.after and round.number <= host.fields.after then
        return "a host is in a round for the second time"
      end
    end
  end
end

--- The hosts that must not be in the round before when a step leads from `before` to `state`: if a
--- round begins with it, members of the last one that reach the store; {[k] = true}.
function model.must_have_ended(before, state)
  local old <const>, doc, found = document(before), document(state), {}
  if not old or doc.number == old.number then return found end
  for _, launch in ipairs(state_key.launches(before.data, old)) do
    for k, host in ipairs(state.hosts) do
      local row <const> = state.data.keys["ltrain/j/hosts/" .. host.id]
      found[k] = found[k] or host.id .. host.lives == launch and row ~= nil
        and state.data.leases[row.lease] ~= nil
    end
  end
  return found
end

--- Whether a step of host k may change the texts of other hosts (state_key.lua): it has changed the
--- document, or begun another life of the host.
function model.concerns_all(before, state, k)
  local old <const>, new = before.data.keys[STATE], state.data.keys[STATE]
  return (old and old.version) ~= (new and new.version)
    or before.hosts[k].lives ~= state.hosts[k].lives
end

--- What an exploration has to know of a state: the status and the number of hosts of its document,
--- nil: there is none; of each host its phase, whether it is in the middle of a turn, in the
--- document's round, and done with its own.
function model.facts(state)
  local doc <const>, hosts = document(state), {}
  for k, host in ipairs(state.hosts) do
    local round <const> = host.fields.round
    hosts[k] = { phase = host.phase, turns = host.turn ~= nil, is_done = host.is_done,
      lives = host.phase == "running" or host.phase == "joining",
      is_current = doc ~= nil and round ~= nil and round.number == doc.number }
  end
  return doc and { status = doc.status, hosts = doc.hosts }, hosts
end

return model
