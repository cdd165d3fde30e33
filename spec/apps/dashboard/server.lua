-- spec/apps/dashboard/server.lua: a dashboard as a process of its own, and clients that send any
-- bytes.
local c = require "ltrain.c"
local child = require "spec.cli.child"

local server = {}
server.__index = server

local BINARY <const> = os.getenv "LTRAIN" or arg[-1] or "ltrain"

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read "a" or ""
  if file then file:close() end
  return text
end

server.read = read

--- A script that fits slowly, until it is ended.
server.MODEL = [[
local lt = require "ltrain"
local clock = require "ltrain.c".runtime.clock
local Net = lt.Module:extend("Net")
function Net:init() self.body = lt.nn.Linear(2, 1) end
function Net:training_step(x)
  local loss = self.body(x):square():mean()
  self:log("loss", loss)
  return loss
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.01}) end
lt.seed(1)
local set = lt.data.TensorDataset{x = lt.randn(64, 2)}
function Net:on_train_batch_start()
  local until_ = clock() + 0.01
  while clock() < until_ do end
end
function Net:on_train_epoch_end() self:log_image("w", self.body.weight:sigmoid()) end
local loader = {}
for i = 1, 16 do loader[i] = lt.randn(4, 2) end
lt.Trainer{max_epochs = 1000000, log_every_n_steps = 1, logger = lt.loggers.CSVLogger(".",
  {flush_logs_every_n_steps = 5})}:fit(Net(), loader)
]]

--- Whether there is the library that serves: false and why not.
function server.missing()
  local http, why = c.runtime.http.open { port = 0, connections = 1, ask_seconds = 1,
    read_seconds = 1, head_bytes = 4096, stream_bytes = 4096 }
  if http then http:close() return nil end
  return why
end

--- Waits until f() is true; fails after a minute.
function server.until_true(what, f)
  for _ = 1, 1200 do
    local value = f()
    if value then return value end
    os.execute "sleep 0.05"
  end
  error("it did not come: " .. what, 2)
end

--- Starts `ltrain` in the background: the number of its process; output goes to folder/NAME.out.
function server.spawn(folder, name, arguments)
  os.remove(folder .. "/" .. name .. ".out") -- another's, of the same name
  local binary = BINARY:find "^/" and BINARY or io.popen("pwd"):read "l" .. "/" .. BINARY
  local words = {}
  for i, word in ipairs(arguments) do words[i] = "'" .. word .. "'" end
  assert(os.execute(("cd '%s' && { env --default-signal=INT '%s' %s >%s.out 2>&1 & echo $! "
    .. ">%s.pid; }"):format(folder, binary, table.concat(words, " "), name, name)))
  return tonumber(read(folder .. "/" .. name .. ".pid"))
end

--- A dashboard of folder/ltrain_logs; `arguments` are more words. Enters it.
function server.start(folder, arguments)
  local self = setmetatable({ folder = folder, at = child.folder() }, server)
  self.pid = server.spawn(folder, "dashboard", { "dashboard", table.unpack(arguments or {}) })
  local text = server.until_true("the address", function()
    return read(folder .. "/dashboard.out"):match "http://127%.0%.0%.1:%d+/%?token=%x+"
  end)
  self.port, self.token = tonumber(text:match ":(%d+)/"), text:match "token=(%x+)"
  return self
end

--- Trades the token for the cookie.
function server:enter()
  local answer = self:raw(("GET /?token=%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
    .. "Connection: close\r\n\r\n"):format(self.token, self.port))
  self.cookie = assert(answer:match "Set%-Cookie: ([^;]+); HttpOnly; SameSite=Strict; Path=/\r\n",
    answer)
  return answer
end

--- What comes back for some bytes, within `seconds` (2) or until the server closes.
function server:raw(bytes, seconds)
  child.write(self.at .. "/request", bytes)
  os.execute(("timeout %s bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d; cat %s/request >&3; cat <&3' "
    .. ">%s/answer 2>%s/wrong"):format(seconds or 2, self.port, self.at, self.at, self.at))
  return read(self.at .. "/answer")
end

--- The status, the body and the head of an answer to a request of the session. more: lines of the
--- head.
function server:ask(target, method, more)
  local answer = self:raw(("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nCookie: %s\r\n"
    .. "Connection: close\r\n%s\r\n"):format(method or "GET", target, self.port, self.cookie or "",
    more or ""), 10)
  local head, body = answer:match "^(.-\r\n)\r\n(.*)$"
  return tonumber(answer:match "^HTTP/1.1 (%d+)"), body, head
end

--- The value of the JSON at a target; fails unless the status is 200.
function server:json(target)
  local status, body = self:ask(target)
  if status ~= 200 then error(("%s: %s %s"):format(target, status, body), 2) end
  return (assert(c.io.json_decode(body, { plain = true })))
end

--- The id of a run by its name.
function server:id(name)
  return server.until_true(name, function()
    for _, run in ipairs(self:json "/api/runs?limit=1000".runs or {}) do
      if run.name == name then return run.id end
    end
  end)
end

--- Whether a process is there.
function server.is_alive(pid)
  local state = read(("/proc/%d/stat"):format(pid)):match "%) (%a)"
  return state ~= nil and state ~= "Z"
end

function server:stop()
  os.execute(("kill -9 %d 2>/dev/null"):format(self.pid))
  child.remove(self.at)
end

return server
