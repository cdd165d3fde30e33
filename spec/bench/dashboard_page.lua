-- spec/bench/dashboard_page.lua: what a repaint of the dashboard's page costs, with a chart of 20
-- runs of 2,000 points each, in a headless Chromium without a GPU.
--
--   ./dev bench dashboard_page
--
-- A repaint is what follows a change of the axis, of smoothing or a zoom. The figures are
-- milliseconds of the processor for each, of scripts and of all that the page's thread does:
-- scripts, layout, and strokes on the canvas.
local browsers = require "spec.apps.dashboard.browser"
local child = require "spec.cli.child"
local fixtures = require "spec.apps.dashboard.fixtures"
local serve = require "spec.apps.dashboard.serve"

local REPAINTS <const> = 20
local KINDS <const> = {
  { "logarithmic axis", "set({ logy: i % 2 === 0 })" },
  { "smoothing", "set({ smooth: i / 40 })" },
  { "zoom", "set({ range: [i * 50, 2500 + i * 50] })" },
}

local function spent(page)
  local found = {}
  for _, one in ipairs(page:call("Performance.getMetrics").metrics) do
    found[one.name] = one.value
  end
  return found
end

local function measure(page, name, change)
  local before = spent(page)
  page:eval(([[(async () => {
    const { set } = await import("/static/state.js");
    for (let i = 1; i <= %d; i++) {
      %s;
      await new Promise((done) => setTimeout(done, 200));
    }
  })()]]):format(REPAINTS, change))
  local after = spent(page)
  local function each(key) return 1000 * (after[key] - before[key]) / REPAINTS end
  print(("%-17s scripts %5.1f ms, all %5.1f ms"):format(name, each "ScriptDuration",
    each "TaskDuration"))
end

local root = child.folder()
fixtures.twenty(root)
do
  local server <close> = serve(root)
  local browser <close> = browsers.open()
  local page = browser:page { width = 1280, height = 800 }
  page:call("Performance.enable", { timeDomain = "threadTicks" })
  page:go(server:address())
  page:wait "document.querySelector('#runs input[type=checkbox]')"
  page:eval [[(async () => {
    const { runs } = await import("/static/runs.js"), { set } = await import("/static/state.js");
    set({ metrics: "train_loss", drawn: runs.list.map((one) => one.id) });
  })()]]
  page:wait "document.querySelectorAll('.card').length === 1"
  os.execute "sleep 3"
  for _, kind in ipairs(KINDS) do measure(page, kind[1], kind[2]) end
  for _, text in ipairs(page.errors) do print("error: " .. text) end
end
child.remove(root)
