-- spec/apps/dashboard/control_spec.lua: the buttons that save and stop, pressed in a headless
-- Chromium over a fit that continues.
-- tags: unsanitized
local browsers = require "spec.apps.dashboard.browser"
local c = require "ltrain.c"
local child = require "spec.cli.child"
local lt = require "ltrain"
local serve = require "spec.apps.dashboard.serve"
local servers = require "spec.apps.dashboard.server"

local it <const>, runs_here = browsers.cases(it, pending, servers.missing())

local function mode_of(path)
  local pipe <close> = assert(io.popen(("stat -c '%%a %%F' '%s' 2>/dev/null"):format(path)))
  return pipe:read "l"
end

describe("the buttons of the dashboard", function()
  local folder, fit

  before_each(function()
    if not runs_here then return end
    folder = child.folder()
    child.write(folder .. "/model.lua", servers.MODEL)
  end)
  after_each(function()
    if fit then os.execute(("kill -9 %d 2>/dev/null"):format(fit)) end
    fit = nil
    if folder then child.remove(folder) end
    folder = nil
  end)

  local function start(...)
    fit = servers.spawn(folder, "fit", { "run", "model.lua", "--run_dir", "runs/fit", ... })
    servers.until_true("rows", function()
      return #servers.read(folder .. "/runs/fit/metrics.csv") > 0
    end)
  end

  -- fn(page) over a dashboard with `options`, at the view of the run.
  local function look(options, fn)
    local server <close> = serve(folder .. "/runs", options)
    local browser <close> = browsers.open()
    local page = browser:page {}
    page:go(server:address())
    page:wait "document.querySelector('#live.on') && document.querySelector('#runs .name')"
    page:eval "document.querySelector('#runs .name').click()"
    page:wait "document.querySelector('.run-head h2')?.innerText === 'fit'"
    fn(page)
    assert.equal("", table.concat(page.errors, "\n"))
  end

  local function badge() return "document.querySelector('.run-head .badge').innerText" end

  it("save a checkpoint, which loads, and stop the fit, which ends with its last one", function()
    start "--dashboard_control"
    look("--dashboard_control", function(page)
      assert.equal("600 socket", mode_of(folder .. "/runs/fit/control.sock"))
      page:wait "document.querySelector('button.save')?.disabled === false"
      -- By keys: the focus stays where it is while the run continues.
      page:eval "document.querySelector('button.save').focus()"
      page:press "Enter"
      page:wait "document.querySelector('main [role=status]').innerText !== ''"
      page:wait [[[...document.querySelectorAll("table.checkpoints td:first-child")].some((one) =>
        one.innerText.startsWith("asked-epoch="))]]
      assert.equal("A checkpoint is being saved.",
        page:eval "document.querySelector('main [role=status]').innerText")
      assert.equal("save", page:eval "document.activeElement.className")
      local name = page:eval [[[...document.querySelectorAll("table.checkpoints td:first-child")]
        .map((one) => one.innerText).find((one) => one.startsWith("asked-epoch="))]]
      local saved = assert(lt.load(("%s/runs/fit/checkpoints/%s"):format(folder, name)))
      assert.same({ 1, 2 }, saved["model.body.weight"].shape)
      assert.equal("running", page:eval(badge()))
      -- A second thought.
      page.answer = false
      page:eval "document.querySelector('button.stop').focus()"
      page:press "Enter"
      assert.same({ "Stop fit after its batch?" }, page.questions)
      assert.is_true(servers.is_alive(fit))
      page.answer = true
      page:press "Enter"
      servers.until_true("its end", function() return not servers.is_alive(fit) end)
      page:wait(badge() .. " === 'interrupted'")
      page:wait [[document.querySelector("pre.error.interrupted")?.innerText
        .startsWith("interrupted: saved ")]]
      assert.is_nil(page:eval "document.querySelector('button.stop, button.save')?.outerHTML")
      page:wait [[[...document.querySelectorAll("table.checkpoints td:first-child")].some((one) =>
        one.innerText === "interrupted.ckpt")]]
      assert.is_nil(mode_of(folder .. "/runs/fit/control.sock"))
    end)
    local _, last = lt.load(folder .. "/runs/fit/checkpoints/interrupted.ckpt", { metadata = true })
    local steps = c.io.json_decode(last.ltrain, { plain = true }).global_step
    local rows = servers.read(folder .. "/runs/fit/metrics.csv")
    assert.equal(tostring(steps - 1), rows:match "\n%d+,(%d+),[^\n]*\n$")
    local run = lt.runs.read(folder .. "/runs/fit")
    assert.equal("interrupted", run.status)
    assert.matches("interrupted: saved ", servers.read(folder .. "/fit.out"), 1, true)
  end)

  it("are not there unless the server has them, and a POST is refused", function()
    start "--dashboard_control"
    look("", function(page)
      page:wait(badge() .. " === 'running'")
      assert.is_nil(page:eval "document.querySelector('button.stop, button.save')?.outerHTML")
      local answer = page:eval [[(async () => {
        const run = (await (await fetch("/api/runs")).json()).runs[0].id;
        const said = [];
        for (const what of ["stop", "save"]) {
          const response = await fetch(`/api/run/${run}/${what}`, { method: "POST" });
          said.push(response.status + " " + (await response.json()).error);
        }
        return said.join("; ");
      })()]]
      assert.matches("403 this dashboard may not control runs.*; 403", answer)
      page.errors = {} -- the browser says of the two that they were refused
    end)
    assert.is_true(servers.is_alive(fit))
  end)

  it("are grey where the fit has not the option", function()
    start()
    look("--dashboard_control", function(page)
      page:wait "document.querySelector('button.save')?.disabled === true"
      assert.matches("It does not listen", page:eval "document.querySelector('main').innerText")
      assert.is_nil(mode_of(folder .. "/runs/fit/control.sock"))
      assert.equal("409", page:eval [[(async () => {
        const run = (await (await fetch("/api/runs")).json()).runs[0].id;
        return String((await fetch(`/api/run/${run}/stop`, { method: "POST" })).status); })()]])
      page.errors = {}
    end)
  end)
end)
