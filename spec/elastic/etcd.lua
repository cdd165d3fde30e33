-- spec/elastic/etcd.lua: servers of etcd for specs.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local stores = require "ltrain.elastic.stores"

local etcd = {}

local SECONDS <const> = 60 -- that servers have to begin

--- Why there can be none here; nil where there can.
function etcd.missing()
  if c.runtime.process.find "etcd" then return nil end
  return "etcd is not installed: apt install etcd-server"
end

--- A port that is free now.
function etcd.free_port()
  local server <const> = assert(c.net.serve("127.0.0.1", 0, 1024, 1024))
  local port <const> = server:port()
  server:close()
  return port
end

local Cluster = {}
Cluster.__index = Cluster

--- Starts server k, again with its data after it was ended.
function Cluster:start(k)
  local server <const>, peers = self.servers[k], {}
  for i, other in ipairs(self.servers) do
    peers[i] = ("s%d=http://%s:%d"):format(i, self.address, other.peer_port)
  end
  local client <const> = ("%s://%s:%d"):format(self.scheme, self.address, server.port)
  local peer <const> = ("http://%s:%d"):format(self.address, server.peer_port)
  local words <const> = { "exec", self.on, "etcd --name s" .. k,
    ("--data-dir %s/s%d"):format(self.folder, k), "--listen-client-urls " .. client,
    "--advertise-client-urls " .. client, "--listen-peer-urls " .. peer,
    "--initial-advertise-peer-urls " .. peer, "--initial-cluster " .. table.concat(peers, ","),
    self.flags, (">>%s/log%d 2>&1"):format(self.folder, k) }
  server.pid = assert(c.runtime.process.start { "sh", "-c", table.concat(words, " ") })
end

--- Ends server k at once, as a failing host does.
function Cluster:kill(k)
  local server <const> = self.servers[k]
  if not server.pid then return end
  c.runtime.process.signal(server.pid, "KILL")
  while not c.runtime.process.wait_any({ server.pid }, 10) do end
  server.pid = nil
end

--- Its URL: of all servers, or of server k.
function Cluster:url(k)
  local list <const> = {}
  for i, server in ipairs(self.servers) do
    if not k or i == k then list[#list + 1] = ("%s:%d"):format(self.address, server.port) end
  end
  return ("%s://%s/job%s"):format(self.scheme == "https" and "etcds" or "etcd",
    table.concat(list, ","), self.query)
end

--- A client, once a server answers.
function Cluster:open(k)
  local store <const> = assert(stores.open(self:url(k)))
  local deadline <const> = c.runtime.clock() + SECONDS
  local value, message
  repeat
    value, message = store:get "is there anybody?"
    assert(value ~= nil or c.runtime.clock() < deadline, message)
    if value == nil then c.runtime.sleep(0.1) end
  until value ~= nil
  return store
end

function Cluster:stop()
  for k in ipairs(self.servers) do self:kill(k) end
  child.remove(self.folder)
end

--- A cluster of n servers, started. `options` (optional): {scheme = "https", flags = of etcd, query
--- = of the URLs, folder = with the certificates, on = words before the command (of a host),
--- address = of that host}.
function etcd.start(n, options)
  options = options or {}
  local self <const> = setmetatable({ servers = {}, folder = options.folder or child.folder(),
    scheme = options.scheme or "http", flags = options.flags or "",
    query = options.query or "", on = options.on or "", address = options.address or "127.0.0.1" },
    Cluster)
  for k = 1, n do
    self.servers[k] = { port = etcd.free_port(), peer_port = etcd.free_port() }
  end
  for k = 1, n do self:start(k) end
  return self
end

return etcd
