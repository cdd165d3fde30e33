--- stdlib/elastic/stores/etcd_errors.lua: why a server of etcd did not do what it was asked, in
--- words that follow "etcd at HOST:PORT", and whether it may do so later.
--
-- A server that starts, has no leader or cannot be reached is asked again. Where it was reached and
-- refuses (another protocol, certificates, a user), waiting does not help: that is REFUSED.
local etcd_errors = {}

-- Codes of gRPC, and ours of a server that will never answer otherwise.
etcd_errors.UNAVAILABLE, etcd_errors.NOT_FOUND, etcd_errors.UNAUTHENTICATED = 14, 5, 16
etcd_errors.REFUSED = -1

local UNAVAILABLE <const>, REFUSED <const> = etcd_errors.UNAVAILABLE, etcd_errors.REFUSED

local ANOTHER <const> = "is not what answers there: is this its port?"

-- What of a TLS connection has failed. The texts are those of OpenSSL and GnuTLS, with which there
-- is a libcurl each.
local function of_tls(o, text)
  if text:find "wrong version number" or text:find "SYSCALL" -- the server has closed
    or text:find "unexpected TLS packet" or text:find "non%-properly terminated" then
    return "does not use TLS: write etcd:// in place of etcds://, without ca and cert"
  elseif text:find "[Cc]ertificate required" or text:find "bad certificate"
    or text:find "handshake failure" then
    return o.cert and ("does not accept the certificate cert=%s"):format(o.cert)
      or "wants a certificate of this host: cert=FILE&key=FILE"
  end
  return "cannot be reached over TLS: " .. text
end

-- By libcurl's number: function(options, text of libcurl, seconds of a request).
local of_transfer <const> = {}

of_transfer[6] = function()
  return "cannot be found: is the name of the host right?", UNAVAILABLE
end

of_transfer[7] = function()
  return "does not answer: does it run there, and is this its port?", UNAVAILABLE
end

of_transfer[28] = function(_, _, seconds)
  return ("has not answered within %g s"):format(seconds), UNAVAILABLE
end

of_transfer[1] = function() return ANOTHER, REFUSED end
of_transfer[8] = of_transfer[1]

of_transfer[58] = function(o, text)
  return ("cannot be asked with the certificate cert=%s and its key=%s: %s"):format(
    o.cert or "(none)", o.key or "(none)", text), REFUSED
end

of_transfer[60] = function(o, text)
  if text:find "subject name" or text:find "host name" or text:find "hostname" then
    return "has a certificate of another host: is the name in the URL that of its certificate?",
      REFUSED
  elseif text:find "expired" then
    return "has a certificate that has expired", REFUSED
  end
  return ("has a certificate of an authority that is not %s"):format(o.ca and "in ca=" .. o.ca
    or "known to this system: ca=FILE"), REFUSED
end

of_transfer[77] = function(o)
  return ("cannot be checked: there are no certificates in ca=%s"):format(o.ca or "FILE"), REFUSED
end

of_transfer[35] = function(o, text) return of_tls(o, text), REFUSED end

-- TLS 1.3 refuses a client after the connection has been made: with its first answer.
of_transfer[56] = function(o, text)
  if text:find "alert" or text:find "[Cc]ertificate" then return of_tls(o, text), REFUSED end
  return "has ended the connection", UNAVAILABLE
end

of_transfer[52] = function(o)
  if o.secure then return "has ended the connection", UNAVAILABLE end
  return "ends connections without an answer: does it use TLS (etcds:// in place of etcd://)?",
    REFUSED
end

--- Of a request without an answer: what happened, and its code.
---@param o table options of the store, and `secure`: it uses TLS
---@param number integer libcurl's
---@param text string libcurl's, with the URL before it
---@param seconds number that an answer may take
function etcd_errors.of_transfer(o, number, text, seconds)
  local why <const> = text:match "^http: %S+: (.*)$" or text
  local of <const> = of_transfer[number]
  if of then return of(o, why, seconds) end
  return "cannot be reached: " .. why, UNAVAILABLE
end

-- Whoever has been asked, the user is the option's.
local function of_user(o, text)
  if text:find "user name is empty" then
    return "wants a user: user=NAME&password=... in --rdzv, or ETCDCTL_USER=NAME:PASSWORD"
  elseif text:find "authentication is not enabled" then
    return ("has no users: write --rdzv without %s"):format(o.user)
  elseif text:find "permission denied" then
    return ("does not let the user %s read and write the keys of this job"):format(o.user)
  elseif text:find "authentication failed" then
    return ("does not know the user %s with this password"):format(o.user)
  end
end

--- Of an answer that is not what was asked for: what is wrong, and its code.
---@param status integer of HTTP
---@param decoded table|nil what the server says of it, if that is JSON
---@param text string the answer
function etcd_errors.of_answer(o, status, decoded, text)
  local message <const> = decoded and (decoded.error or decoded.message)
  if type(message) == "string" then
    local code <const> = math.tointeger(decoded.code) or 0
    local of_its_user <const> = of_user(o, message)
    if of_its_user then
      return of_its_user, code == UNAVAILABLE and code or REFUSED
    end
    return "has failed: " .. message, code
  elseif text:find "HTTP request to an HTTPS server" then
    return "uses TLS: write etcds:// in place of etcd://", REFUSED
  elseif status == 401 then
    return "wants to know who asks (HTTP status 401)", etcd_errors.UNAUTHENTICATED
  elseif status >= 500 then
    return ("has failed (HTTP status %d)"):format(status), UNAVAILABLE
  end
  return ANOTHER, REFUSED
end

return etcd_errors
