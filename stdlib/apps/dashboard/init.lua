--- stdlib/apps/dashboard/init.lua: the dashboard's server: runs in a browser on this machine.
--
-- It only reads the folders of runs, so it works for those that continue, have ended, were killed
-- or copied from elsewhere, and no browser can hold a fit up. One thread answers all requests; what
-- takes long is kept (Catalogue, RunMetrics), or made in pieces.
local Catalogue = require "ltrain.apps.dashboard.Catalogue"
local access_control = require "ltrain.apps.dashboard.access_control"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local events = require "ltrain.apps.dashboard.events"
local json = require "ltrain.apps.dashboard.json"
local request_target = require "ltrain.apps.dashboard.request_target"
local routes = require "ltrain.apps.dashboard.routes"
local time_slices = require "ltrain.apps.dashboard.time_slices"

local Dashboard = class.extend(nil, "Dashboard")

local PORT <const>, PORTS <const> = 8490, 10 -- the ports that are tried where none is asked for
local LIMITS <const> = { connections = 128, ask_seconds = 15, read_seconds = 60,
  head_bytes = 32768, stream_bytes = 1 << 20 }
local JSON <const>, TEXT <const> = "application/json", "text/plain; charset=utf-8"

local function open(port)
  local o = { port = port }
  for name, value in next, LIMITS do o[name] = value end
  return c.runtime.http.open(o)
end

-- At the port that is asked for, or at the first of some that is free.
local function open_somewhere(port)
  if port then return open(port) end
  for one = PORT, PORT + PORTS - 1 do
    local http, message = open(one)
    if http or not message:find "in use" then return http, message end
  end
  return open(0)
end

--- Opens a server. roots: paths of folders; o: {port = number or nil, control = whether runs may be
--- stopped and saved, entered(address) = called when the printed address has been used, with the
--- next one (optional), warn(text)}. Nil and a reason.
function Dashboard.open(roots, o)
  local http, message = open_somewhere(o.port)
  if not http then return nil, message end
  local self = Dashboard()
  self.http, self.control = http, o.control or false
  self.entered, self.warn = o.entered, o.warn
  self.guard = access_control.new(http:port())
  self.catalogue, self.events = Catalogue(roots), events.new()
  self.begun = {} -- answers that are made in pieces: {request =, thread =}, the next first
  self.catalogue:scan()
  return self
end

--- The address to be opened, with a token that is good once.
function Dashboard:address() return access_control.address(self.guard) end

local function answer(self, request, status, kind, bytes, more)
  local headers = table.move(access_control.headers, 1, #access_control.headers, 1, {})
  headers[#headers + 1] = { "Content-Type", kind }
  for _, one in ipairs(more or {}) do headers[#headers + 1] = one end
  self.http:answer(request.id, status, headers, bytes)
end

local function refuse(self, request, status, reason)
  local is_api = request.target:find "^/api/"
  answer(self, request, status, is_api and JSON or TEXT,
    is_api and json.encode { error = reason } or reason .. "\n")
end

-- With the printed token: the session's cookie, and the page without the token in its address.
local function enter(self, request, query)
  local cookie = query.token and #query.token == 1
    and access_control.enter(self.guard, query.token[1])
  if not cookie then return false end
  answer(self, request, 303, TEXT, "", { { "Location", "/" }, { "Set-Cookie", cookie } })
  if self.entered then self.entered(self:address()) end
  return true
end

local function handle(self, request)
  local status, reason = access_control.refuse(self.guard, request)
  if status then return refuse(self, request, status, reason) end
  local parts, query, wrong = request_target.read(request.target)
  if not parts then return refuse(self, request, query, wrong) end
  if #parts == 0 and request.method == "GET" and enter(self, request, query) then return end
  if not access_control.has_session(self.guard, request) then
    return refuse(self, request, 401, "open the address that ltrain dashboard printed")
  end
  local kind, bytes
  status, kind, bytes = routes.answer(self, request, parts, query)
  if status then answer(self, request, status, kind, bytes) end
end

-- What a handler raised: {status, reason}, or a fault, which its client alone sees.
local function report(self, request, failure)
  if type(failure) == "table" and math.type(failure[1]) == "integer" then
    return refuse(self, request, failure[1], failure[2])
  end
  refuse(self, request, 500, c.runtime.error_text(failure))
end

-- A piece of an answer; the next one comes after those of others.
local function continue(self, stopped)
  local one = table.remove(self.begun, 1)
  if not one then return end
  local ended, ok, failure = time_slices.run(one.thread)
  if not ended then
    table.insert(self.begun, one)
  elseif not ok then
    if stopped() then error(failure, 0) end
    report(self, one.request, failure)
  end
end

--- Serves for some time, or until one request is answered. `stopped()`: whether a signal has ended
--- what was being done.
function Dashboard:step(stopped)
  local request, message = self.http:wait(#self.begun > 0 and 0 or events.pause(self.events))
  if message then return nil, message end
  if request then
    local thread = coroutine.create(function() handle(self, request) end)
    table.insert(self.begun, 1, { request = request, thread = thread })
  end
  continue(self, stopped)
  local ok, failure = pcall(events.pump, self.events, self.http, self.catalogue)
  if not ok then
    if stopped() then error(failure, 0) end
    self.warn("events: " .. c.runtime.error_text(failure))
  end
  return true
end

function Dashboard:close() self.http:close() end

return Dashboard
