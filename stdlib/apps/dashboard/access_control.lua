--- stdlib/apps/dashboard/access_control.lua: authentication of requests: a token, then a session
--- cookie; Host and Origin are checked.
--
-- The address that is printed holds a token; whoever asks with it first gets the cookie of the
-- session, and from then on the token is void. A page of another site that has this browser ask
-- here is recognised by the Host header (a name that was pointed at 127.0.0.1), has no cookie (it
-- is SameSite=Strict), and may not change anything (Origin).
local c = require "ltrain.c"

local access_control = {}

local METHODS <const> = { GET = true, HEAD = true, POST = true }

--- Headers of all answers.
access_control.headers = {
  { "Content-Security-Policy", "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    .. "base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
  { "X-Content-Type-Options", "nosniff" },
  { "X-Frame-Options", "DENY" },
  { "Referrer-Policy", "no-referrer" },
  { "Cross-Origin-Resource-Policy", "same-origin" },
  { "Cross-Origin-Opener-Policy", "same-origin" },
  { "Cache-Control", "no-store" },
}

--- The secrets of a server at a port.
function access_control.new(port)
  return { port = port, cookie = ("ltrain_%d"):format(port), session = c.runtime.http.secret(),
    token = c.runtime.http.secret() }
end

-- In a time that does not depend on where they differ.
local function same(a, b)
  if not a or not b or #a ~= #b then return false end
  local differ = 0
  for i = 1, #a do differ = differ | (a:byte(i) ~ b:byte(i)) end
  return differ == 0
end

-- The one field of a name; nil where there is none, false where there are several.
local function field(request, name)
  local value
  for _, one in ipairs(request) do
    if one[1]:lower() == name then
      if value ~= nil then return false end
      value = one[2]
    end
  end
  return value
end

local function has_session(g, request)
  for _, one in ipairs(request) do
    if one[1]:lower() == "cookie" then
      for name, value in one[2]:gmatch "([^=;%s]+)=([^;%s]*)" do
        if name == g.cookie and same(value, g.session) then return true end
      end
    end
  end
  return false
end

local function check_host(g, request)
  local host = field(request, "host")
  for _, name in ipairs { "127.0.0.1", "localhost" } do
    if host == ("%s:%d"):format(name, g.port) then return host end
  end
end

--- Whether a request comes from where it may: nil, or a status and a reason.
function access_control.refuse(g, request)
  local host = check_host(g, request)
  if not host then return 403, "the Host header is not this dashboard's" end
  if not METHODS[request.method] then return 405, "this method is not served" end
  local origin = field(request, "origin")
  local is_own = origin == "http://" .. host
  if origin ~= nil and not is_own then return 403, "the Origin header is not this dashboard's" end
  if request.method == "POST" and not is_own then return 403, "a POST needs an Origin header" end
end

--- Whether a token is the one that was printed last: it is void from now on, and the session's
--- cookie is the answer's.
function access_control.enter(g, token)
  if not same(token, g.token) then return nil end
  g.token = c.runtime.http.secret()
  return ("%s=%s; HttpOnly; SameSite=Strict; Path=/"):format(g.cookie, g.session)
end

access_control.has_session = has_session

--- The address to be printed.
function access_control.address(g)
  return ("http://127.0.0.1:%d/?token=%s"):format(g.port, g.token)
end

return access_control
