-- spec/elastic/model.lua: explores the rendezvous protocol: every order in which the requests of
-- hosts can reach the store, with failures between any two of them.
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

-- The same where something is about to be changed: what other states share is copied before.
local function own_store(state)
  if not state.owns_data then state.data, state.owns_data = copy(state.data), true end
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

--- The first state: n hosts that begin to join. `options`: min, max, max_restarts, failures, and
--- `events`: which there are: crash, expiry, failed, leave (and joins again), done.
function model.begin(n, options)
  local state <const> = { hosts = {}, left = options.failures,
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

-- Calls add(next state, text) for each thing that can happen to a host.
local function events(options, state, k, add)
  local host <const>, allowed = state.hosts[k], options.events
  local function try(text, change)
    local new <const> = { left = state.left, data = state.data,
                          hosts = table.move(state.hosts, 1, #state.hosts, 1, {}) }
    new.hosts[k] = copy_of(host)
    change(new, new.hosts[k])
    add(new, host.id .. " " .. text)
  end
  local function turn(name, cost)
    try(name, function(new, h)
      new.left = new.left - (cost or 0)
      step(options, new, h, name)
    end)
  end
  if host.phase == "crashed" then
    try("returns", function(_, h) start(options, h) end)
  elseif host.phase == "left" then
    try("joins again", function(_, h) h.phase = "joining" end)
  end
  local lease <const>, is_lost = lease_of(state, host)
  if is_lost then
    try("is found to have gone", function(new) expire(new, lease) end)
  end
  if host.turn then
    try("goes on", function(new, h) step(options, new, h) end)
  elseif host.phase == "joining" then
    turn "join"
  elseif host.phase == "running" then
    turn "poll"
    if allowed.done and not host.is_done then turn "done" end
    if allowed.failed and state.left > 0 and not host.is_done then turn("failed", 1) end
    if allowed.leave and state.left > 0 then turn("leave", 1) end
  end
  if state.left > 0 and (host.phase == "joining" or host.phase == "running") then
    if allowed.crash then
      try("crashes", function(new, h)
        new.left, h.phase, h.turn, h.fields, h.is_done = new.left - 1, "crashed", nil, {}, nil
      end)
    end
    if allowed.expiry and lease and not is_lost then
      try("loses its lease", function(new)
        new.left = new.left - 1
        expire(new, lease)
      end)
    end
  end
end

local function document(state)
  local row <const> = state.data.keys[STATE]
  return row and decode(row)
end

-- What is wrong with a state that came after `before`; nil: nothing.
local function violation(options, before, state)
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
  if doc and old and doc.number > old.number then
    for _, launch in ipairs(state_key.launches(before.data, old)) do
      for _, host in ipairs(state.hosts) do
        local row <const> = state.data.keys["ltrain/j/hosts/" .. host.id]
        if host.id .. host.lives == launch and host.phase == "running" and not host.is_done and row
          and host.fields.round.number == old.number and state.data.leases[row.lease] then
          return ("round %d began while host %s was in round %d"):format(doc.number, host.id,
            old.number)
        end
      end
    end
  end
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

local TURNS <const> = 40 -- of each host, that suffice for a round to begin

-- Whether all hosts that live agree: they run one round together, or the job is closed.
local function is_settled(options, state)
  local doc, alive = document(state), 0
  for _, host in ipairs(state.hosts) do
    if host.phase == "running" or host.phase == "joining" then alive = alive + 1 end
    if host.turn then return false end
  end
  if alive == 0 or alive < options.min then return true end
  if not doc then return false end
  for _, host in ipairs(state.hosts) do
    if doc.status == "closed" and (host.phase == "running" or host.phase == "joining") then
      return false
    elseif host.phase == "joining" and doc.hosts < options.max then
      return false
    elseif host.phase == "running" and (doc.status ~= "running"
      or host.fields.round.number ~= doc.number) then
      return false
    end
  end
  return doc.status == "closed" or doc.status == "running" and doc.hosts <= alive
end

-- The turn that a host has next when nothing fails: ranks of a round end together.
local function next_turn(state, host)
  if host.phase ~= "running" then return host.phase == "joining" and "join" or nil end
  for _, other in ipairs(state.hosts) do
    if other.is_done and not host.is_done
      and other.fields.round.number == host.fields.round.number then return "done" end
  end
  return "poll"
end

-- Without more failures, whether the hosts that live come together from this state, each taking
-- its turn after the other. `known`: keys of states from which they do.
local function comes_together(options, state, known)
  local passed <const> = {}
  local now <const> = { left = state.left, data = state.data, hosts = copy(state.hosts) }
  for _, host in ipairs(now.hosts) do
    local lease <const>, is_lost = lease_of(now, host)
    if is_lost then expire(now, lease) end
  end
  for _ = 1, TURNS do
    if is_settled(options, now) then
      for _, key in ipairs(passed) do known[key] = true end
      return true
    end
    local key <const> = state_key.of(now)
    if known[key] then
      for _, other in ipairs(passed) do known[other] = true end
      return true
    end
    passed[#passed + 1] = key
    for _, host in ipairs(now.hosts) do
      local name <const> = next_turn(now, host)
      if host.turn or name then
        repeat step(options, now, host, name) until not host.turn
      end
    end
  end
  return false
end

--- Explores the states of n hosts. Returns how many there are, how many steps lead to them, and nil
--- or what is wrong with the way to it. `limit` (optional): at most so many states, drawn by
--- `random(k)`.
function model.explore(n, options, limit, random)
  local first <const> = model.begin(n, options)
  local seen <const>, settled, stack = { [state_key.of(first)] = true }, {}, { { first } }
  local count, steps, wrong = 1, 0, nil
  while #stack > 0 and not wrong and count < (limit or math.huge) do
    if random then
      local k <const> = random(#stack)
      stack[k], stack[#stack] = stack[#stack], stack[k]
    end
    local node <const> = table.remove(stack)
    local state <const> = node[1]
    if not comes_together(options, state, settled) then wrong = { "nobody goes on", node } end
    for k in ipairs(state.hosts) do
      events(options, state, k, function(new, text)
        steps = steps + 1
        local key <const> = state_key.of(new)
        local reached <const> = { new, text, node }
        local fault <const> = violation(options, state, new)
        if fault and not wrong then wrong = { fault, reached } end
        if not seen[key] then
          seen[key] = true
          count = count + 1
          stack[#stack + 1] = reached
        end
      end)
    end
  end
  if not wrong then return count, steps end
  local way, node = {}, wrong[2]
  while node do
    table.insert(way, 1, node[2] or "")
    node = node[3]
  end
  return count, steps, wrong[1] .. ":\n  " .. table.concat(way, "\n  ")
end

return model
