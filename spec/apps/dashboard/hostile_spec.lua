-- spec/apps/dashboard/hostile_spec.lua: what a dashboard answers to those who may not ask, or ask
-- badly.
-- tags: slow
local child = require "spec.cli.child"
local servers = require "spec.apps.dashboard.server"

local ROW <const> = "epoch,step,loss\n0,0,0.5\n"

-- Each row: what it is, the request, the statuses that are right. In requests HOST, COOKIE, ID and
-- PORT stand for those of the server; END ends a head. A status of 0: closed without an answer.
local SESSION <const> = "Host: HOST\r\nCookie: COOKIE\r\n"
local function get(target) return ("GET %s HTTP/1.1\r\n%sEND"):format(target, SESSION) end
local function post(more, target)
  return ("POST %s HTTP/1.1\r\n%s%sEND"):format(target or "/api/run/ID/stop", SESSION, more)
end
local LONG <const> = ("a"):rep(9000)

local REQUESTS <const> = {
  -- Without the session.
  { "the page without a cookie", "GET / HTTP/1.1\r\nHost: HOST\r\nEND", 401 },
  { "the runs without a cookie", "GET /api/runs HTTP/1.1\r\nHost: HOST\r\nEND", 401 },
  { "a script without a cookie", "GET /static/main.js HTTP/1.1\r\nHost: HOST\r\nEND", 401 },
  { "an image without a cookie", "GET /media/ID/0/0 HTTP/1.1\r\nHost: HOST\r\nEND", 401 },
  { "events without a cookie", "GET /api/events HTTP/1.1\r\nHost: HOST\r\nEND", 401 },
  { "a path that is not there, without a cookie", "GET /x HTTP/1.1\r\nHost: HOST\r\nEND", 401 },
  { "another cookie", "GET / HTTP/1.1\r\nHost: HOST\r\nCookie: ltrain_PORT=00\r\nEND", 401 },
  { "a cookie of another name", "GET / HTTP/1.1\r\nHost: HOST\r\nCookie: x=SECRET\r\nEND", 401 },
  { "the start of the cookie", "GET / HTTP/1.1\r\nHost: HOST\r\nCookie: ltrain_PORT=\r\nEND", 401 },
  { "the token again", "GET /?token=TOKEN HTTP/1.1\r\nHost: HOST\r\nEND", 401 },
  { "no token", "GET /?token= HTTP/1.1\r\nHost: HOST\r\nEND", 401 },
  { "two tokens", "GET /?token=a&token=b HTTP/1.1\r\nHost: HOST\r\nEND", 401 },
  { "the session as a token", "GET /?token=SECRET HTTP/1.1\r\nHost: HOST\r\nEND", 401 },
  -- Names that were pointed here.
  { "another Host", "GET / HTTP/1.1\r\nHost: evil.example\r\nCookie: COOKIE\r\nEND", 403 },
  { "another Host with the port", "GET / HTTP/1.1\r\nHost: evil:PORT\r\nCookie: COOKIE\r\nEND",
    403 },
  { "a Host that begins so", "GET / HTTP/1.1\r\nHost: HOST.evil\r\nCookie: COOKIE\r\nEND", 403 },
  { "Host without the port", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: COOKIE\r\nEND", 403 },
  { "Host with another port", "GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nCookie: COOKIE\r\nEND", 403 },
  { "no Host", "GET / HTTP/1.1\r\nCookie: COOKIE\r\nEND", { 400, 403 } },
  { "an empty Host", "GET / HTTP/1.1\r\nHost:\r\nCookie: COOKIE\r\nEND", 403 },
  { "two Hosts", "GET / HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\nCookie: COOKIE\r\nEND", 403 },
  { "HTTP/1.0 without Host", "GET / HTTP/1.0\r\nCookie: COOKIE\r\nEND", 403 },
  { "the token with another Host", "GET /?token=TOKEN HTTP/1.1\r\nHost: evil\r\nEND", 403 },
  -- Pages of others.
  { "a GET of another Origin", "GET / HTTP/1.1\r\n" .. SESSION .. "Origin: http://evil\r\nEND",
    403 },
  { "POST without Origin", post "", 403 },
  { "POST with Origin null", post "Origin: null\r\n", 403 },
  { "POST of another Origin", post "Origin: http://evil.example\r\n", 403 },
  { "POST of https", post "Origin: https://HOST\r\n", 403 },
  { "POST of another port", post "Origin: http://127.0.0.1:1\r\n", 403 },
  { "POST of the other name", post "Origin: http://localhost:PORT\r\n", 403 },
  { "POST with two Origins", post "Origin: http://HOST\r\nOrigin: http://evil\r\n", 403 },
  { "POST without control", post "Origin: http://HOST\r\n", 403 },
  { "POST of what is not there", post("Origin: http://HOST\r\n", "/api/run/ID/delete"), 404 },
  { "POST of the page", post("Origin: http://HOST\r\n", "/"), 404 },
  { "GET of stop", get "/api/run/ID/stop", 404 },
  -- Methods.
  { "PUT", "PUT / HTTP/1.1\r\n" .. SESSION .. "END", 405 },
  { "DELETE", "DELETE /api/run/ID HTTP/1.1\r\n" .. SESSION .. "END", 405 },
  { "OPTIONS", "OPTIONS / HTTP/1.1\r\n" .. SESSION .. "END", 405 },
  { "TRACE", "TRACE / HTTP/1.1\r\n" .. SESSION .. "END", 405 },
  { "CONNECT", "CONNECT evil:80 HTTP/1.1\r\n" .. SESSION .. "END", { 400, 405 } },
  { "a method of its own", "JEFF / HTTP/1.1\r\n" .. SESSION .. "END", 405 },
  -- Paths.
  { "up", get "/../../../../etc/passwd", 404 },
  { "up from static", get "/static/../../etc/passwd", 404 },
  { "up, escaped", get "/static/%2e%2e/%2e%2e/etc/passwd", 404 },
  { "up, escaped slashes", get "/static/..%2f..%2fetc%2fpasswd", 404 },
  { "up, escaped twice", get "/static/%252e%252e%252fetc%252fpasswd", 404 },
  { "up, backslashes", get "/static/..\\..\\etc\\passwd", 404 },
  { "absolute", get "//etc/passwd", 404 },
  { "absolute below static", get "/static//etc/passwd", 404 },
  { "a hidden file", get "/static/.bashrc", 404 },
  { "a folder", get "/static/", 404 },
  { "a NUL, escaped", get "/static/main.js%00.png", 404 },
  { "a NUL", get "/static/main.js\0.png", { 400, 404, 200, 0 } },
  { "a script of the library", get "/static/init.lua", 404 },
  { "another scheme", get "http://evil.example/", { 400, 404 } },
  { "no path", get "*", { 400, 404 } },
  { "a fragment", get "/#x", 400 },
  { "a line break, escaped", get "/%0d%0aSet-Cookie:%20x=1", 404 },
  { "bytes that are no ASCII", get "/\xFF\xFE", 404 },
  -- Runs.
  { "a run that is not there", get "/api/run/0000000000000000", 404 },
  { "a path as an id", get "/api/run/version_0", 404 },
  { "a way up as an id", get "/api/run/..", 404 },
  { "a long id", get("/api/run/" .. ("a"):rep(4000)), 404 },
  { "a view that is not there", get "/api/run/ID/passwd", 404 },
  { "more of a path", get "/api/run/ID/metrics/x", 404 },
  { "an image that is not there", get "/media/ID/99999/0", 404 },
  { "an image by its path", get "/media/ID/..%2f..%2frun.json/0", 404 },
  { "an image below 0", get "/media/ID/-1/0", 404 },
  { "an image of no number", get "/media/ID/0x/1e3", 404 },
  { "an image outside of the run", get "/media/ID/0/0", 404 },
  { "an image at an absolute path", get "/media/ID/0/1", 404 },
  { "an image that is a link", get "/media/ID/0/2", 404 },
  { "an image that is no image", get "/media/ID/0/3", 404 },
  { "an image in a folder that is a link", get "/media/ID/0/4", 404 },
  { "an image that is a pipe", get "/media/ID/0/5", 404 },
  { "diff of a path", get "/api/diff?a=ID&b=../../etc", 404 },
  { "diff of one", get "/api/diff?a=ID", 400 },
  -- Queries.
  { "a wrong escape", get "/api/runs?filter=%zz", 400 },
  { "a NUL in a query", get "/api/runs?filter=%00", 400 },
  { "a line break in a query", get "/api/runs?filter=%1b", 400 },
  { "no UTF-8 in a query", get "/api/runs?filter=%ff", 400 },
  { "too many points", get "/api/run/ID/metrics?points=1000000000", 400 },
  { "points below 0", get "/api/run/ID/metrics?points=-5", 400 },
  { "points of a huge number", get("/api/run/ID/metrics?points=" .. ("9"):rep(400)), 400 },
  { "points twice", get "/api/run/ID/metrics?points=20&points=30", 400 },
  { "another axis", get "/api/run/ID/metrics?x=hours", 400 },
  { "from NaN", get "/api/run/ID/metrics?from=nan", 400 },
  { "from a table", get "/api/run/ID/metrics?from=0x1p4", 400 },
  { "a limit that is too large", get "/api/runs?limit=1000000", 400 },
  { "another order", get "/api/runs?order=up", 400 },
  { "another sort", get "/api/runs?sort=_G", 400 },
  { "an offset of no number", get "/api/run/ID/console?from=1e3", 400 },
  { "events of too many runs", get("/api/events?" .. ("run=ID&"):rep(33)), 400 },
  -- Sizes.
  { "a long address", get("/" .. LONG), { 414 } },
  { "a long query", get("/api/runs?filter=" .. LONG), { 414 } },
  { "a head that is too large", "GET / HTTP/1.1\r\n" .. SESSION .. "X: " .. ("a"):rep(50000)
    .. "\r\nEND", { 400, 413, 414, 431, 0 } },
  { "too many fields", "GET / HTTP/1.1\r\n" .. SESSION .. ("X: 1\r\n"):rep(100) .. "END", 431 },
  { "a body", post "Origin: http://HOST\r\nContent-Length: 5\r\n" .. "hello", 413 },
  { "a body of a GET", "GET / HTTP/1.1\r\n" .. SESSION .. "Content-Length: 5\r\nENDhello", 413 },
  { "a huge body", post "Origin: http://HOST\r\nContent-Length: 99999999999\r\n", 413 },
  { "a size below 0", post "Origin: http://HOST\r\nContent-Length: -1\r\n", { 400, 413 } },
  { "chunks", post "Origin: http://HOST\r\nTransfer-Encoding: chunked\r\n" .. "5\r\nhello\r\n",
    413 },
  { "two sizes", post "Origin: http://HOST\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n",
    { 400, 413 } },
  -- Requests within requests.
  { "a second request in the body of a GET", "GET /api/about HTTP/1.1\r\n" .. SESSION
    .. "Content-Length: 40\r\n\r\n" .. post "Origin: http://HOST\r\n", 413 },
  { "chunks and a size", post("Origin: http://HOST\r\nTransfer-Encoding: chunked\r\n"
    .. "Content-Length: 4\r\n"), { 400, 413 } },
  { "another coding", post "Origin: http://HOST\r\nTransfer-Encoding: xchunked\r\n",
    { 400, 413, 501 } },
  { "a body that is announced", post "Origin: http://HOST\r\nExpect: 100-continue\r\n"
    .. "Content-Length: 99999\r\n", { 100, 413 } }, -- then refused
  { "a POST in a header", "GET /api/run/ID/stop HTTP/1.1\r\n" .. SESSION
    .. "Origin: http://HOST\r\nX-HTTP-Method-Override: POST\r\nEND", 404 },
  -- Names of this host that are none.
  { "a folded Host", "GET / HTTP/1.1\r\nHost: HOST\r\n evil\r\nCookie: COOKIE\r\nEND",
    { 400, 403, 0 } },
  { "a blank before Host's colon", "GET / HTTP/1.1\r\nHost : HOST\r\nCookie: COOKIE\r\nEND",
    { 400, 403, 0 } },
  { "a user in Host", "GET / HTTP/1.1\r\nHost: a@HOST\r\nCookie: COOKIE\r\nEND", 403 },
  { "a path in Host", "GET / HTTP/1.1\r\nHost: HOST/x\r\nCookie: COOKIE\r\nEND", 403 },
  { "Host as a number", "GET / HTTP/1.1\r\nHost: 2130706433:PORT\r\nCookie: COOKIE\r\nEND",
    403 },
  { "Host of IPv6", "GET / HTTP/1.1\r\nHost: [::1]:PORT\r\nCookie: COOKIE\r\nEND", 403 },
  { "Host of all addresses", "GET / HTTP/1.1\r\nHost: 0.0.0.0:PORT\r\nCookie: COOKIE\r\nEND",
    403 },
  { "Host with a dot", "GET / HTTP/1.1\r\nHost: localhost.:PORT\r\nCookie: COOKIE\r\nEND", 403 },
  { "the Host that a proxy was asked for", "GET / HTTP/1.1\r\nHost: evil\r\n"
    .. "X-Forwarded-Host: HOST\r\nCookie: COOKIE\r\nEND", 403 },
  { "an address with this host in it", get "http://HOST/api/about", { 400, 404 } },
  { "a GET of Origin null", "GET / HTTP/1.1\r\n" .. SESSION .. "Origin: null\r\nEND", 403 },
  -- More paths.
  { "up in long UTF-8", get "/static/%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd", 404 },
  { "up with a parameter", get "/static/..;/..;/etc/passwd", 404 },
  { "up in UTF-16", get "/static/%u002e%u002e/etc/passwd", 404 },
  { "a dot", get "/./api/about", 404 },
  { "two slashes", get "/api//about", 404 },
  { "up at the end", get "/api/about/..", 404 },
  { "a slash at the end", get "/api/run/ID/", 404 },
  { "a NUL behind an id", get "/api/run/ID%00", 404 },
  { "an end behind an id", get "/api/run/ID.json", 404 },
  { "an escaped digit", get "/media/ID/%30/0", 404 },
  { "the largest image", get "/media/ID/9223372036854775807/9223372036854775807", 404 },
  { "an image of an exponent", get "/media/ID/1e3/0", 404 },
  -- More queries.
  { "a limit of none", get "/api/run/ID/media?limit=0", 400 },
  { "an offset beyond numbers", get "/api/run/ID/media?offset=-9223372036854775808", 400 },
  { "a start beyond numbers", get "/api/run/ID/console?from=9223372036854775807", 400 },
  { "a sign", get "/api/run/ID/metrics?points=%2B20", 400 },
  { "a fraction", get "/api/run/ID/metrics?points=20.0", 400 },
  { "a dot for a number", get "/api/run/ID/metrics?from=.", 400 },
  { "two axes", get "/api/run/ID/metrics?x=step&x=epoch", 400 },
  { "an empty order", get "/api/runs?order=", 400 },
  { "events by HEAD", "HEAD /api/events HTTP/1.1\r\n" .. SESSION .. "END", 405 },
  { "events by POST", post("Origin: http://HOST\r\n", "/api/events"), 404 },
  { "a cookie that is too large", "GET / HTTP/1.1\r\nHost: HOST\r\nCookie: "
    .. ("a=b; "):rep(8000) .. "COOKIE\r\nEND", { 400, 431, 0 } },
  { "HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", { 400, 403, 405, 505, 0 } },
  -- No HTTP.
  { "zeros", ("\0"):rep(100) .. "\r\n\r\n", { 400, 0 } },
  { "a hello of TLS", "\x16\x03\x01\x02\0\1\0\1\xfc\3\3" .. ("\xaa"):rep(200) .. "\r\n\r\n",
    { 400, 0 } },
  { "another version", "GET / HTTP/9.9\r\n" .. SESSION .. "END", { 400, 403, 505, 0 } },
  { "no version", "GET /\r\n\r\n", { 400, 403, 0 } },
  { "a line alone", "\r\n\r\n\r\n", { 400, 0 } },
  { "a field without a colon", "GET / HTTP/1.1\r\n" .. SESSION .. "what\r\nEND", { 400, 0 } },
}

local FORBIDDEN <const> = { "root:", "SECRET TEXT", "traceback" }

describe("a dashboard that is asked", function()
  local folder, server, id
  local why = servers.missing()

  setup(function()
    if why then return end
    folder = child.folder()
    local run = folder .. "/ltrain_logs/version_0"
    assert(os.execute(("mkdir -p %s/media '%s/secret' && mkfifo %s/media/pipe.png"):format(run,
      folder, run)))
    child.write(run .. "/metrics.csv", ROW)
    child.write(folder .. "/secret/a.png", "\x89PNG\r\n\x1a\nSECRET TEXT")
    child.write(run .. "/media/text.png", "SECRET TEXT")
    child.write(run .. "/media/index.jsonl", ('{"kind":"image","name":"x","step":0,"files":['
      .. '"../../../secret/a.png","%s/secret/a.png","link.png","text.png","folder/a.png",'
      .. '"pipe.png"]}\n'):format(folder))
    assert(os.execute(("ln -s '%s/secret/a.png' %s/media/link.png && ln -s '%s/secret' "
      .. "%s/media/folder"):format(folder, run, folder, run)))
    server = servers.start(folder)
    server:enter()
    id = server:id "version_0"
  end)

  teardown(function()
    if server then server:stop() end
    if folder then child.remove(folder) end
  end)

  local function fill(request)
    local secret = server.cookie:match "=(.*)"
    return (request:gsub("END", "Connection: close\r\n\r\n"):gsub("HOST", "127.0.0.1:"
      .. server.port):gsub("COOKIE", server.cookie):gsub("SECRET", secret):gsub("PORT",
      tostring(server.port)):gsub("TOKEN", server.token):gsub("%f[%u]ID%f[%U]", id))
  end

  for _, row in ipairs(REQUESTS) do
    it(("refuses %s"):format(row[1]), function()
      if why then pending(why) return end
      local answer = server:raw(fill(row[2]))
      local status = tonumber(answer:match "^HTTP/1%.[01] (%d+)") or 0
      local right = type(row[3]) == "table" and row[3] or { row[3] }
      local is_right = false
      for _, one in ipairs(right) do is_right = is_right or one == status end
      assert(is_right, ("got %d: %s"):format(status, answer:sub(1, 600)))
      for _, text in ipairs(FORBIDDEN) do assert.is_nil(answer:find(text, 1, true), answer) end
      assert.equal(200, (server:ask "/api/about")) -- nothing has happened to it
    end)
  end

  it("has the headers of a page that trusts nothing", function()
    if why then pending(why) return end
    for _, target in ipairs { "/", "/api/runs", "/nothing", "/static/main.js" } do
      local _, _, head = server:ask(target)
      for _, line in ipairs { "Content-Security-Policy: default-src 'self';",
        "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
        "Cross-Origin-Resource-Policy: same-origin", "Cache-Control: no-store",
        "X-Frame-Options: DENY" } do
        assert.truthy(head:find(line, 1, true), target .. ": " .. head)
      end
      assert.is_nil(head:find("Access-Control", 1, true))
      assert.is_nil(head:find("unsafe", 1, true))
    end
  end)

  it("listens on 127.0.0.1 alone", function()
    if why then pending(why) return end
    local port = (":%04X"):format(server.port)
    local seen = 0
    for line in servers.read "/proc/net/tcp":gmatch "[^\n]+" do
      local address = line:match("^%s*%d+: (%x+)" .. port .. " 00000000:0000 0A")
      if address then
        seen = seen + 1
        assert.equal("0100007F", address)
      end
    end
    assert.equal(1, seen)
    assert.is_nil(servers.read "/proc/net/tcp6":find(port .. " 0+:0000 0A"))
  end)
end)
