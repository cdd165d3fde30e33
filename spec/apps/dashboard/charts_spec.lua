-- spec/apps/dashboard/charts_spec.lua: the charts of the page, in a headless Chromium: their
-- labels, what they join, their order, their files.
local browsers = require "spec.apps.dashboard.browser"
local c = require "ltrain.c"
local child = require "spec.cli.child"
local fixtures = require "spec.apps.dashboard.fixtures"
local serve = require "spec.apps.dashboard.serve"

local it <const>, runs_here = browsers.cases(it, pending, browsers.no_charts())

local RUNS <const> = 8

-- An accuracy close to 1, and losses of training and validation.
local function metrics_text(k)
  local lines = { "epoch,step,acc,train/loss,val/loss" }
  for i = 0, 9 do
    lines[i + 2] = ("0,%d,%.6f,%g,%.17g"):format(i, 0.9999 + i * 1e-5, k / (i + 1), 2 / (i + 1) / 3)
  end
  return table.concat(lines, "\n") .. "\n"
end

describe("the charts of the dashboard", function()
  local root, server, browser, page, ids

  setup(function()
    if not runs_here then return end
    root, ids = child.folder(), {}
    for k = 1, RUNS do
      fixtures.run(("%s/run%d"):format(root, k), k, {})
      child.write(("%s/run%d/metrics.csv"):format(root, k), metrics_text(k))
    end
    server = serve(root, "--dashboard_control true")
    browser = browsers.open()
    page = browser:page {}
    page:go(server:address())
    page:wait(("document.querySelectorAll('#runs li .name').length === %d"):format(RUNS))
    local found = page:eval [[import("/static/runs.js").then(({ runs }) =>
      Object.fromEntries(runs.list.map((one) => [one.name, one.id])))]]
    for k = 1, RUNS do ids[k] = found["run" .. k] end
  end)

  teardown(function()
    if not runs_here then return end
    browser:__close()
    server:__close()
    child.remove(root)
  end)

  -- Shows a state of the page; waits until it is there.
  local function show(state, wait)
    page:eval(([[import("/static/state.js").then(({ set }) => set(%s))]]):format(
      c.io.json_encode(state, { plain = true })))
    page:wait(wait)
  end

  before_each(function()
    if not runs_here then return end
    page:eval [[import("/static/state.js").then(({ set }) => set({ pins: null, range: null }))]]
    show({ view = "curves", drawn = { ids[1] }, metrics = "", join = false, logy = false },
      "document.querySelectorAll('.card').length === 3 && !document.querySelector('.pinned')")
  end)

  -- The texts of the elements in the chart of a metric.
  local function texts(metric, selector)
    return page:eval(([[[...document.querySelectorAll('.card[data-metric="%s"] %s')]
      .map((one) => one.innerText).filter(Boolean)]]):format(metric, selector))
  end

  local function titles()
    return page:eval "[...document.querySelectorAll('.card h3')].map((one) => one.innerText)"
  end

  it("have labels at the axes that differ", function()
    page:wait [[[...document.querySelectorAll('[data-metric=acc] .dygraph-axis-label-y')]
      .filter((one) => /^0.9999\d$/.test(one.innerText)).length > 2]]
    local seen, labels = {}, texts("acc", ".dygraph-axis-label-y")
    for _, label in ipairs(labels) do
      assert.is_nil(seen[label], table.concat(labels, " "))
      seen[label] = true
    end
  end)

  it("have 1, 2 and 5 at a logarithmic axis", function()
    show({ logy = true }, [[[...document.querySelectorAll(
      '.card[data-metric="train/loss"] .dygraph-axis-label-y')].map((one) => one.innerText)
      .filter(Boolean).sort().join(" ") === "0.1 0.2 0.5 1"]])
  end)

  it("have five digits in their legends, and the whole value on hover", function()
    page:wait "document.querySelectorAll('[data-metric=\"val/loss\"] .value').length === 1"
    assert.same({ "0.066667" }, texts("val/loss", ".legend .value"))
    assert.equal("0.06666666666666667",
      page:eval "document.querySelector('[data-metric=\"val/loss\"] .value').title")
  end)

  it("join train and val where that is chosen", function()
    assert.same({ "acc", "train/loss", "val/loss" }, titles())
    show({ join = true }, "document.querySelectorAll('[data-metric=loss] .legend li').length === 2")
    assert.same({ "acc", "loss" }, titles())
    assert.same({ "run1 train", "run1 val" }, texts("loss", ".legend .text"))
  end)

  it("are pinned and moved, also after a reload", function()
    local function press(metric, label)
      page:eval(([[document.querySelector('.card[data-metric="%s"] [title="%s"]').click()]])
        :format(metric, label))
    end
    press("val/loss", "Pin to the top")
    page:wait "document.querySelectorAll('.cards.pinned .card').length === 1"
    press("train/loss", "Pin to the top")
    page:wait "document.querySelectorAll('.cards.pinned .card').length === 2"
    assert.same({ "val/loss", "train/loss", "acc" }, titles())
    press("train/loss", "Move to the front")
    page:wait "document.querySelector('.card h3').innerText === 'train/loss'"
    page:call("Page.reload")
    page:wait "document.querySelectorAll('.card').length === 3"
    assert.same({ "train/loss", "val/loss", "acc" }, titles())
  end)

  it("give their values and pictures as files", function()
    local text = page:eval(([[import("/static/download.js").then(({ asCsv }) =>
      asCsv("loss", ["train/loss", "val/loss"], ["%s"]))]]):format(ids[1]))
    assert.matches("^run,metric,step,value\nrun1,train/loss,0,1\n", text)
    assert.equal(21, select(2, text:gsub("\n", "")))
    page:eval [[HTMLCanvasElement.prototype.toBlob = ((plain) => function (done) {
      plain.call(this, (blob) => { window.drawn = blob.size; done(blob); });
    })(HTMLCanvasElement.prototype.toBlob)]]
    page:wait "document.querySelector('.card .dygraph-axis-label')"
    page:eval [[document.querySelector('[title="Picture as PNG"]').click()]]
    page:wait "window.drawn > 2000"
  end)

  it("fold a legend of more than six lines, each with its colour", function()
    show({ drawn = ids }, "document.querySelectorAll('[data-metric=acc] .legend li').length === 8")
    assert.is_false(page:eval "document.querySelector('.legends details').open")
    assert.same({ "8 lines" }, texts("acc", ".legends summary"))
    assert.equal(8, page:eval [[new Set([...document.querySelectorAll(
      "[data-metric=acc] .legend .swatch")].map((one) => one.style.background)).size]])
  end)

  it("fill the page where there are few", function()
    show({ metrics = "acc" }, "document.querySelectorAll('.card').length === 1")
    assert.is_true(page:eval [[(() => {
      const card = document.querySelector(".card").getBoundingClientRect();
      const main = document.querySelector("#main").getBoundingClientRect();
      return card.width > main.width - 60 && card.height > 0.5 * main.height;
    })()]])
  end)

  it("stand beside runs that have tags and notes", function()
    show({ view = "run", run = ids[2] }, "document.querySelector('form.labels')")
    page:eval [[(() => {
      const [tags, note] = document.querySelectorAll("form.labels input");
      tags.value = "good, base line";
      note.value = "lower rate";
      document.querySelector("form.labels button").click();
    })()]]
    page:wait(("document.querySelectorAll('#runs [data-id=\"%s\"] .tag').length === 2")
      :format(ids[2]))
    assert.equal('{"note":"lower rate","tags":["good","base-line"]}\n',
      c.io.read_file(root .. "/run2/labels.json"))
    show({ filter = "tag=good" }, "document.querySelectorAll('#runs li').length === 1")
    show({ filter = "" }, ("document.querySelectorAll('#runs li').length === %d"):format(RUNS))
  end)

  it("leave the page without errors", function()
    assert.equal("", table.concat(page.errors, "\n"))
  end)
end)
