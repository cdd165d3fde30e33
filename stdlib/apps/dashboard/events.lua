--- stdlib/apps/dashboard/events.lua: server-sent events: streams of changes to the runs.
--
-- Runs that some page watches are checked a few times a second, all others every other second.
-- What has changed goes to all streams that want it; one that does not read is cut off.
local Catalogue = require "ltrain.apps.dashboard.Catalogue"
local c = require "ltrain.c"
local charts = require "ltrain.apps.dashboard.charts"
local json = require "ltrain.apps.dashboard.json"
local record = require "ltrain.runs.record"

local events = {}

local WATCHED <const> = 32 -- runs of a stream
local STREAMS <const> = 48
local LOOK <const>, SCAN <const>, BEAT <const> = 0.3, 2, 15 -- seconds

-- What a page fetches again, and the file that tells of it.
local FILES <const> = { media = "media/index.jsonl", console = "console.log",
  system = "system.csv", layers = "layers.jsonl", checkpoints = "checkpoints", run = record.FILE }

--- The state of a server's streams.
function events.new()
  return { streams = {}, count = 0, watched = {}, looked = 0, scanned = 0, beaten = 0 }
end

local function text_of(name, data)
  return ("event: %s\ndata: %s\n\n"):format(name, json.encode(data))
end

local function drop(of, id)
  of.streams[id], of.count = nil, of.count - 1
end

local function send(of, http, id, text)
  if not http:send(id, text) then drop(of, id) end
end

local function mark_of(run, name)
  local kind, size, modified, number = Catalogue.stat(run, name)
  return kind and ("%s %d %.9f %d"):format(kind, size, modified, number) or ""
end

-- What is known of a run that is watched: rows, generation, marks of its files.
local function watch(of, run)
  if of.watched[run.id] then return end
  run.metrics:update()
  local marks = {}
  for what, name in next, FILES do marks[what] = mark_of(run, name) end
  of.watched[run.id] = { run = run, marks = marks, generation = run.metrics.generation,
    rows = (run.metrics.curves:size()) }
end

--- GET /api/events: begins a stream.
function events.open(of, http, request_id, headers, catalogue, query)
  local asked = query.run or {}
  if #asked > WATCHED then
    error({ 400, ("run: a stream has at most %d"):format(WATCHED) }, 0)
  elseif of.count >= STREAMS then
    error({ 503, "too many pages are open" }, 0)
  end
  local wants, hello = {}, json.list {}
  for _, id in ipairs(asked) do
    local run = catalogue:find(id)
    if run and not wants[id] then
      watch(of, run)
      local known = of.watched[id]
      wants[id] = true
      hello[#hello + 1] = { id = id, generation = known.generation, rows = known.rows }
    end
  end
  if not http:answer(request_id, 200, headers) then return end
  of.streams[request_id], of.count = wants, of.count + 1
  send(of, http, request_id, text_of("hello", { runs = hello }))
end

local function tell(of, http, id, text)
  for stream, wants in next, of.streams do
    if id == nil or wants[id] then send(of, http, stream, text) end
  end
end

local function look_at_rows(of, http, known)
  local run = known.run
  run.metrics:update()
  if run.metrics.generation ~= known.generation then
    known.generation, known.rows = run.metrics.generation, (run.metrics.curves:size())
    tell(of, http, run.id, text_of("reset", { id = run.id, generation = known.generation }))
    return
  end
  local event = charts.since(run, known.rows)
  if event then
    known.rows = event.rows
    tell(of, http, run.id, text_of("rows", event))
  end
end

local function look_at_files(of, http, known)
  local what = {}
  for name, file in next, FILES do
    local mark = mark_of(known.run, file)
    if mark ~= known.marks[name] then what[#what + 1], known.marks[name] = name, mark end
  end
  if #what > 0 then
    table.sort(what)
    tell(of, http, known.run.id, text_of("changed", { id = known.run.id, what = what }))
  end
end

local function look_at_watched(of, http)
  local wanted = {}
  for _, wants in next, of.streams do
    for id in next, wants do wanted[id] = true end
  end
  for id, known in next, of.watched do
    if wanted[id] then
      look_at_rows(of, http, known)
      look_at_files(of, http, known)
    else
      of.watched[id] = nil
    end
  end
end

local function look_at_all(of, http, catalogue)
  local changed, gone = catalogue:scan()
  if #changed == 0 and #gone == 0 then return end
  local data = { runs = json.list {}, gone = json.list(gone) }
  for i, run in ipairs(changed) do data.runs[i] = Catalogue.summary(run) end
  tell(of, http, nil, text_of("runs", data))
end

--- Sends what has changed, where that is due.
function events.pump(of, http, catalogue)
  local now = c.runtime.clock()
  if of.count == 0 then
    of.watched = {}
    return
  end
  if now - of.looked >= LOOK then
    look_at_watched(of, http)
    of.looked = c.runtime.clock()
  end
  if now - of.scanned >= SCAN then
    look_at_all(of, http, catalogue)
    of.scanned = c.runtime.clock()
  end
  if now - of.beaten >= BEAT then
    tell(of, http, nil, ": \n\n")
    of.beaten = now
  end
end

--- Seconds until something is due.
function events.pause(of)
  return of.count > 0 and LOOK or 1
end

return events
