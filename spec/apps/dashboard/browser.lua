-- spec/apps/dashboard/browser.lua: a headless Chromium, driven by the DevTools protocol over two
-- pipes.
--
--   local browser <close> = browsers.open()
--   local page = browser:page { width = 1200, height = 800, dark = true }
--   page:go(url)
--   page:wait "document.querySelector('.card')"
--   print(page:eval "document.title", page.errors[1])
--
-- The protocol's messages are objects of JSON, each followed by a zero byte.
local c = require "ltrain.c"
local child = require "spec.cli.child"

local browsers = {}
local Browser, Page = {}, {}
Browser.__index, Page.__index = Browser, Page

local PROGRAMS <const> = { "chromium-headless-shell", "chromium" }
local LIMIT <const> = 120 -- seconds that one may live

local function output_of(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read("l")
end

local function json(value) return c.io.json_encode(value, { plain = true }) end

--- The program; nil and the reason why there is none.
function browsers.program()
  for _, name in ipairs(PROGRAMS) do
    if output_of("command -v " .. name) then return name end
  end
  return nil, "no Chromium here (chromium-headless-shell)"
end

--- Why there are no charts; nil: there are.
function browsers.no_charts()
  return not c.runtime.asset "dygraph.min.js" and "this build has no charts (libjs-dygraphs)" or nil
end

--- The `it` of cases in a browser, which is `pending` where there is none, or for the reason
--- `missing`; and whether they run.
function browsers.cases(it, pending, missing)
  local _, reason = browsers.program()
  reason = reason or missing
  if not reason then return it, true end
  return function(name) pending(name .. ": " .. reason) end, false
end

--- Starts one.
function browsers.open()
  local folder = child.folder()
  local options = { "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--no-proxy-server",
    "--remote-debugging-pipe", "--user-data-dir=" .. folder .. "/profile" }
  assert(os.execute(("mkfifo %s/in %s/out"):format(folder, folder)))
  local command = ("cd %s && (timeout -k 5 %d %s %s about:blank 3<in 4>out >log 2>&1 &"
    .. " echo $! >pid)")
    :format(folder, LIMIT, assert(browsers.program()), table.concat(options, " "))
  assert(os.execute(command))
  local self = setmetatable({ folder = folder, id = 0, pages = {} }, Browser)
  self.to = assert(io.open(folder .. "/in", "wb"))
  self.from = assert(io.open(folder .. "/out", "rb"))
  self.to:setvbuf("no")
  return self
end

local function receive(self)
  local bytes = {}
  while true do
    local byte = self.from:read(1)
    if not byte then
      error("the browser has ended: " .. (c.io.read_file(self.folder .. "/log") or ""))
    end
    if byte == "\0" then break end
    bytes[#bytes + 1] = byte
  end
  return assert(c.io.json_decode(table.concat(bytes), { plain = true }))
end

-- What a page has to say without being asked.
local function note(self, message)
  local page = self.pages[message.sessionId or ""]
  if not page then return end
  local params = message.params
  if message.method == "Page.javascriptDialogOpening" then -- a question: the page waits meanwhile
    page.questions[#page.questions + 1] = params.message
    self.id = self.id + 1
    self.to:write(json { id = self.id, method = "Page.handleJavaScriptDialog",
      sessionId = message.sessionId, params = { accept = page.answer } }, "\0")
  end
  if message.method == "Runtime.exceptionThrown" then
    local details = params.exceptionDetails
    page.errors[#page.errors + 1] = details.exception and details.exception.description
      or details.text
  elseif message.method == "Log.entryAdded" then
    if params.entry.level == "error" or params.entry.level == "warning" then
      page.errors[#page.errors + 1] = ("%s %s"):format(params.entry.text, params.entry.url or "")
    end
  elseif message.method == "Runtime.consoleAPICalled" then
    page.errors[#page.errors + 1] = json(params.args)
  elseif message.method == "Network.requestWillBeSent" then
    page.requests[#page.requests + 1] = params.request.url
  end
end

--- Sends a command and waits for its answer.
function Browser:call(method, params, session)
  self.id = self.id + 1
  local id = self.id
  self.to:write(json { id = id, method = method, sessionId = session,
    params = next(params or {}) and params or nil }, "\0")
  while true do
    local message = receive(self)
    if message.id == id then
      if message.error then error(("%s: %s"):format(method, message.error.message), 3) end
      return message.result
    end
    note(self, message)
  end
end

--- A new page: {width =, height =, dark =, phone =}. `errors` of it, `requests`, and `questions`
--- (confirm), which get page.answer.
function Browser:page(o)
  local target = self:call("Target.createTarget", { url = "about:blank" }).targetId
  local attached = self:call("Target.attachToTarget", { targetId = target, flatten = true })
  local page = setmetatable({ browser = self, session = attached.sessionId, errors = {},
    requests = {}, questions = {}, answer = true }, Page)
  self.pages[page.session] = page
  for _, domain in ipairs { "Page", "Runtime", "Log", "Network" } do
    page:call(domain .. ".enable")
  end
  page:look(o or {})
  return page
end

function Browser:__close()
  self.to:close()
  self.from:close()
  os.execute(("cd %s && pid=$(cat pid) && kill $pid 2>/dev/null && timeout 5 tail --pid=$pid -f "
    .. "/dev/null"):format(self.folder))
  child.remove(self.folder)
end

function Page:call(method, params) return self.browser:call(method, params, self.session) end

--- How it is checked.
function Page:look(o)
  self:call("Emulation.setDeviceMetricsOverride", { width = o.width or 1280,
    height = o.height or 800, deviceScaleFactor = 1, mobile = o.phone or false })
  self:call("Emulation.setEmulatedMedia", { features = { { name = "prefers-color-scheme",
    value = o.dark and "dark" or "light" } } })
end

function Page:go(url) self:call("Page.navigate", { url = url }) end

--- The value of an expression, of a promise what it comes to.
function Page:eval(expression)
  local answer = self:call("Runtime.evaluate", { expression = expression, awaitPromise = true,
    returnByValue = true })
  local details = answer.exceptionDetails
  if details then error(details.exception and details.exception.description or details.text, 2) end
  return answer.result.value
end

--- Waits until an expression is true, a minute at most: a busy machine is slow, not wrong.
function Page:wait(expression)
  for _ = 1, 3 do -- a page that is being left forgets what it was asked
    local ok, found = pcall(self.eval, self, ([[new Promise(async (done) => {
      for (let i = 0; i < 2400; i++) {
        let found = false;
        try { found = (%s); } catch {}
        if (found) return done(true);
        await new Promise((next) => setTimeout(next, 25));
      }
      done(false);
    })]]):format(expression))
    if ok and found then return end
    if ok then break end
  end
  error(("the page never came to %s; it says:\n%s\n%s"):format(expression,
    tostring(self:eval "document.body.innerText"):sub(1, 2000), table.concat(self.errors, "\n")), 2)
end

--- Presses a key: "Tab", "Enter", "ArrowRight" or a character.
function Page:press(key, modifiers)
  local codes = { Tab = 9, Enter = 13, Escape = 27, Space = 32, End = 35, Home = 36, ArrowLeft = 37,
    ArrowUp = 38, ArrowRight = 39, ArrowDown = 40 }
  local text = key == "Enter" and "\r" or key == "Space" and " " or #key == 1 and key or nil
  local event = { key = key == "Space" and " " or key, code = key, text = text,
    modifiers = modifiers, windowsVirtualKeyCode = codes[key] or key:byte() }
  event.type = text and "keyDown" or "rawKeyDown"
  self:call("Input.dispatchKeyEvent", event)
  event.type, event.text = "keyUp", nil
  self:call("Input.dispatchKeyEvent", event)
end

--- Moves the mouse there; presses and lets go with `click`.
function Page:mouse(x, y, click)
  self:call("Input.dispatchMouseEvent", { type = "mouseMoved", x = x, y = y })
  for _, kind in ipairs(click and { "mousePressed", "mouseReleased" } or {}) do
    self:call("Input.dispatchMouseEvent", { type = kind, x = x, y = y, button = "left",
      clickCount = 1, buttons = kind == "mousePressed" and 1 or 0 })
  end
end

--- Writes what is seen to a file, a PNG.
function Page:picture(path)
  local data = self:call("Page.captureScreenshot", { format = "png" }).data
  child.write(path .. ".base64", data)
  assert(os.execute(("base64 -d %s.base64 >%s && rm %s.base64"):format(path, path, path)))
end

return browsers
