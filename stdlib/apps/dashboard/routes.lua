--- stdlib/apps/dashboard/routes.lua: the routes of the server (README.md in this folder).
local c = require "ltrain.c"
local Catalogue = require "ltrain.apps.dashboard.Catalogue"
local assets = require "ltrain.apps.dashboard.assets"
local charts = require "ltrain.apps.dashboard.charts"
local run_diff = require "ltrain.apps.dashboard.run_diff"
local events = require "ltrain.apps.dashboard.events"
local access_control = require "ltrain.apps.dashboard.access_control"
local json = require "ltrain.apps.dashboard.json"
local labels = require "ltrain.apps.dashboard.labels"
local layers = require "ltrain.apps.dashboard.layers"
local listing = require "ltrain.apps.dashboard.listing"
local records = require "ltrain.apps.dashboard.records"
local system = require "ltrain.apps.dashboard.system"
local request_target = require "ltrain.apps.dashboard.request_target"

local routes = {}

local TYPES <const> = {
  html = "text/html; charset=utf-8", js = "text/javascript; charset=utf-8",
  css = "text/css; charset=utf-8", svg = "image/svg+xml", png = "image/png",
  ico = "image/x-icon", txt = "text/plain; charset=utf-8",
}
local WORDS <const> = { stop = true, save = true, labels = true }
local STARTED <const> = 0.05 -- seconds of a scan that a list may ask for

local function fail(status, text) error({ status, text }, 0) end

local function find(server, id)
  local run = server.catalogue:find(id)
  if not run then fail(404, "no such run") end
  return run
end

local function asset(name)
  local bytes = assets.get(name)
  local kind = TYPES[name:match "%.(%w+)$"]
  if not bytes or not kind then fail(404, "no such file") end
  return kind, bytes
end

-- Whether a fit listens in the folder of a run.
local function listens(run)
  return run.status == "running" and c.runtime.inbox.send(run.root, run.path) == true
end

local function one_run(server, run)
  local answer = Catalogue.summary(run)
  answer.metrics = charts.summaries(run)
  answer.info, answer.path = run.info, run.full
  answer.rows, answer.generation = (run.metrics.curves:size()), run.metrics.generation
  answer.checkpoints, answer.media = records.checkpoints(run), records.media_names(run)
  local _, console = Catalogue.stat(run, "console.log")
  answer.console = console or 0
  answer.layers = layers.any(run)
  answer.system = Catalogue.stat(run, "system.csv") == "file"
  answer.control = server.control and listens(run)
  return answer
end

-- What follows /api/run/ID.
local OF_RUN <const> = {
  metrics = charts.metrics, media = records.media, console = records.console,
  system = system.answer, layers = layers.answer,
}

local function get_run(server, parts, query)
  local run = find(server, parts[3])
  if #parts == 3 then return one_run(server, run) end
  local answer = #parts == 4 and OF_RUN[parts[4]]
  if not answer then fail(404, "no such path") end
  return answer(run, query)
end

local function compare(server, query)
  local a, b = request_target.text(query, "a"), request_target.text(query, "b")
  if not a or not b then fail(400, "diff needs a and b, ids of runs") end
  return run_diff.answer(find(server, a), find(server, b))
end

local function list(server, query)
  if c.runtime.clock() - server.catalogue.scanned > STARTED then server.catalogue:scan() end
  return listing.answer(server.catalogue, query)
end

local function about(server)
  return { version = c.version, root = table.concat(server.catalogue.roots, " "),
    control = server.control, runs = #server.catalogue.list }
end

local function get_api(server, parts, query)
  local word = parts[2]
  if word == "run" and parts[3] then return get_run(server, parts, query) end
  if #parts ~= 2 then fail(404, "no such path") end
  if word == "runs" then return list(server, query) end
  if word == "diff" then return compare(server, query) end
  if word == "about" then return about(server) end
  fail(404, "no such path")
end

local function post(server, parts, query)
  local word = parts[4]
  if parts[1] ~= "api" or parts[2] ~= "run" or #parts ~= 4 or not WORDS[word] then
    fail(404, "no such path")
  elseif not server.control then
    fail(403, "this dashboard may not control runs: start it with --dashboard-control")
  end
  local run = find(server, parts[3])
  if word == "labels" then return labels.write(run, query) end
  local ok = run.status == "running" and c.runtime.inbox.send(run.root, run.path, word)
  if not ok then
    fail(409, "the run does not listen: it has ended, or was started without --dashboard-control")
  end
  return { accepted = true }
end

--- The answer to a request that may be made: status, content type, bytes. Nothing of a stream that
--- has begun. Raises {status, reason}.
function routes.answer(server, request, parts, query)
  if request.method == "POST" then
    return 202, "application/json", json.encode(post(server, parts, query))
  elseif #parts == 0 then
    return 200, asset "index.html"
  elseif parts[1] == "static" and #parts == 2 then
    return 200, asset(parts[2])
  elseif parts[1] == "media" and #parts == 4 then
    return 200, TYPES.png, records.image(find(server, parts[2]), parts[3], parts[4])
  elseif parts[1] == "api" and parts[2] == "events" and #parts == 2 then
    if request.method ~= "GET" then fail(405, "a stream is for GET") end
    server.catalogue:scan()
    local headers = table.move(access_control.headers, 1, #access_control.headers, 1, {})
    headers[#headers + 1] = { "Content-Type", "text/event-stream" }
    events.open(server.events, server.http, request.id, headers, server.catalogue, query)
    return nil
  elseif parts[1] == "api" and parts[2] then
    return 200, "application/json", json.encode(get_api(server, parts, query))
  end
  fail(404, "no such path")
end

return routes
