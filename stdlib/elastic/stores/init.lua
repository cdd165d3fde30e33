--- stdlib/elastic/stores/init.lua: opens the key-value store that the launchers of a job share.
--
-- A store has the methods of memory.lua. Those that ask another process return nil and a message
-- while it cannot be reached; `put`, `create` and `replace` return false where nothing was set.
-- After a message a change may have been made or not. `refusal(key)`, which memory.lua lacks, says
-- before a job begins why waiting would not help.
local errors = require "ltrain.core.errors"

local stores = {}

local SCHEMES <const> = { "file", "tcp", "etcd", "etcds", "http", "https" }

local function open_etcd(parsed) return require "ltrain.elastic.stores.etcd".open(parsed) end

local open <const> = { etcd = open_etcd, etcds = open_etcd, http = open_etcd, https = open_etcd }

function open.tcp(parsed) return require "ltrain.elastic.stores.tcp".open(parsed) end

function open.file(parsed) return require "ltrain.elastic.stores.file".open(parsed) end

local function decode(text)
  return (text:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

-- {scheme, user, password, hosts = {{host =, port =}, ...}, path, parameters} of a URL; nil and
-- what is wrong with it.
local function parse(url)
  local scheme <const>, rest = url:match "^(%w+)://(.*)$"
  if not scheme then
    return nil, "a store is written as tcp://HOST:PORT, etcd://HOST:PORT/JOB or file:///FOLDER"
  elseif not open[scheme] then
    local unknown <const> = errors.unknown(scheme, SCHEMES)
    return nil, ("unknown store %s%s"):format(unknown, unknown:find "did you mean" and ""
      or ": write tcp://, etcd://, etcds:// or file://")
  end
  local before <const>, query = rest:match "^([^?]*)%??(.*)$"
  local authority <const>, path = before:match "^([^/]*)(.*)$"
  if scheme == "file" and (authority ~= "" or path == "") then
    return nil, "a folder has three slashes before it: file:///shared/folder"
  end
  local login <const>, endpoints = authority:match "^(.-)@?([^@]*)$"
  local parsed <const> = { scheme = scheme, hosts = {}, path = decode(path), parameters = {} }
  if login ~= "" then
    local user <const>, password = login:match "^([^:]*):?(.*)$"
    parsed.user, parsed.password = decode(user), decode(password)
  end
  for endpoint in endpoints:gmatch "[^,]+" do
    local host, port = endpoint:match "^%[([%x:.]+)%]:?(%d*)$"
    if not host then host, port = endpoint:match "^([^:%[%]]+):?(%d*)$" end
    if not host then return nil, ("%s is not HOST:PORT"):format(errors.show(endpoint)) end
    table.insert(parsed.hosts, { host = host, port = math.tointeger(tonumber(port)) })
  end
  for name, value in query:gmatch "([^&=]+)=?([^&]*)" do
    parsed.parameters[decode(name)] = decode(value)
  end
  return parsed
end

--- The host names of a URL, a list (of file:// none); nil and a message.
function stores.hosts(url)
  local parsed <const>, wrong = parse(url)
  if not parsed then return nil, ("%s: %s"):format(url, wrong) end
  local names <const> = {}
  for i, server in ipairs(parsed.hosts) do names[i] = server.host end
  return names
end

--- The store of a URL; nil and a message. Its field `job` is the name of the job in the URL, nil
--- where it has none (of file:// the path is the folder).
---@param url string|nil nil: of one host, in the memory of this process
function stores.open(url)
  if not url then return require "ltrain.elastic.stores.memory"() end
  local parsed <const>, wrong = parse(url)
  if not parsed then return nil, ("%s: %s"):format(url, wrong) end
  local store <const>, message = open[parsed.scheme](parsed)
  if not store then return nil, ("%s: %s"):format(url, message) end
  local job <const> = parsed.path:match "^/*(.-)/*$"
  store.job = parsed.scheme ~= "file" and job ~= "" and job or nil
  return store
end

return stores
