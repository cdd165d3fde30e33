-- spec/apps/dashboard/page_spec.lua: the page, in a headless Chromium, shows what folders of runs
-- hold.
-- tags: unsanitized
local browsers = require "spec.apps.dashboard.browser"
local c = require "ltrain.c"
local child = require "spec.cli.child"
local fixtures = require "spec.apps.dashboard.fixtures"
local serve = require "spec.apps.dashboard.serve"

local it <const>, runs_here = browsers.cases(it, pending, browsers.no_charts())

-- The fields of a metrics.csv: a list of rows by name.
local function table_of(path)
  local names, rows = nil, {}
  for line in (assert(c.io.read_file(path))):gmatch "[^\n]+" do
    local fields = {}
    for field in (line .. ","):gmatch "([^,]*)," do fields[#fields + 1] = field end
    if names then
      local row = {}
      for i, name in ipairs(names) do row[name] = fields[i] end
      rows[#rows + 1] = row
    else
      names = fields
    end
  end
  return rows, names
end

local function last_of(rows, name)
  for i = #rows, 1, -1 do
    if rows[i][name] ~= "" then return rows[i][name] end
  end
end

describe("the dashboard's page", function()
  local root, server, browser, page, ids

  setup(function()
    if not runs_here then return end
    root = child.folder()
    fixtures.kinds(root, true)
    server = serve(root)
    browser = browsers.open()
    page = browser:page {}
    page:go(server:address())
    page:wait "document.querySelector('#live.on') && document.querySelector('#runs li .name')"
    ids = page:eval [[import("/static/runs.js").then(({ runs }) =>
      Object.fromEntries(runs.list.map((one) => [one.name, one.id])))]]
  end)

  teardown(function()
    if not runs_here then return end
    browser:__close()
    server:__close()
    child.remove(root)
  end)

  before_each(function()
    if not runs_here then return end
  end)

  -- Shows a state of the page; waits until it is there.
  local function show(state, wait)
    page:eval(([[import("/static/state.js").then(({ set }) => set(%s))]]):format(
      c.io.json_encode(state, { plain = true })))
    page:wait(wait)
  end

  local function text_of(selector)
    return page:eval(("document.querySelector(%q)?.innerText"):format(selector))
  end

  -- Of a run's table of metrics: name -> text in that column.
  local function column(k)
    return page:eval(([[Object.fromEntries([...document.querySelectorAll("table.metrics tbody tr")]
      .map((row) => [row.cells[0].innerText, row.cells[%d].innerText]))]]):format(k))
  end

  for _, name in ipairs { "finished", "broken", "killed", "tiny" } do
    it("has the last values of " .. name .. " as metrics.csv has them", function()
      show({ view = "run", run = ids[name] }, ("document.querySelector('.run-head h2')?.innerText"
        .. " === %q && document.querySelector('table.metrics')"):format(name))
      local rows, names = table_of(("%s/%s/metrics.csv"):format(root, name))
      local shown = column(1)
      for i = 3, #names do
        local want = last_of(rows, names[i])
        assert.equal(want or nil, shown[names[i]] ~= "" and shown[names[i]] or nil)
      end
    end)
  end

  it("reads every value of a curve out as metrics.csv has it", function()
    show({ view = "curves", drawn = { ids.broken }, metrics = "train_loss", range = { 90, 119 } },
      "document.querySelectorAll('.card').length === 1 && document.querySelector('.legend .value')")
    page:eval "document.querySelector('.chart').focus()"
    local rows = table_of(root .. "/broken/metrics.csv")
    local wrong, seen = {}, 0
    for step = 90, 119 do
      page:press "ArrowRight"
      local value, at = text_of ".tip .value", text_of ".tip tr td:last-child"
      if at ~= "step " .. step or value ~= rows[step + 1].train_loss then
        wrong[#wrong + 1] = ("%s %s, not %s"):format(at, value, rows[step + 1].train_loss)
      end
      seen = seen + 1
    end
    assert.equal("", table.concat(wrong, "; "))
    assert.equal(30, seen)
    assert.equal("20 not finite", text_of ".card .note")
    page:press "Escape"
    assert.is_true(page:eval "document.querySelector('.tip').hidden")
    page:press "0"
    page:wait "!location.hash.includes('range')"
  end)

  it("lists the runs with their states, and finds them by words and by values", function()
    local states = page:eval [[Object.fromEntries([...document.querySelectorAll("#runs li")]
      .map((one) => [one.querySelector(".text").textContent,
        one.querySelector(".badge").textContent]))]] -- innerText: "" until a row is in view
    assert.same({ finished = "finished", media = "finished", broken = "failed", killed = "killed",
      stopped = "interrupted", tiny = "finished", goes_on = "running" }, states)
    show({ filter = "failed" }, "document.querySelectorAll('#runs li').length === 1")
    assert.matches("^1 of 7 runs", text_of "#runs .count")
    show({ filter = "width=16" },
      "document.querySelector('#runs li .text')?.innerText === 'finished'")
    show({ filter = "width=1" }, "document.querySelectorAll('#runs li .text').length === 0")
    show({ filter = "lr=5e-2" },
      "document.querySelector('#runs li .text')?.innerText === 'finished'")
    show({ filter = "", sort = "name", order = "asc" },
      "document.querySelectorAll('#runs li').length === 7")
    page:wait "document.querySelector('#runs li .text').innerText === 'broken'"
    show({ sort = "started", order = "desc" },
      "document.querySelector('#runs li .text').innerText === 'goes_on'")
  end)

  it("continues curves as rows are written", function()
    show({ view = "curves", drawn = { ids.goes_on }, metrics = "train_loss" },
      "document.querySelectorAll('.card').length === 1 && document.querySelector('.legend .value')")
    assert(c.io.append_file(root .. "/goes_on/metrics.csv", "5,500,0.0000625,,,\n5,501,1e-05,,,\n"))
    page:wait "document.querySelector('.legend .value').title === '1e-05'"
  end)

  it("forgets rows that are no more, as of a run that was resumed", function()
    local path = root .. "/goes_on/metrics.csv"
    local text = c.io.read_file(path)
    child.write(path, fixtures.metrics(9, 50))
    local last = last_of(table_of(path), "train_loss")
    page:wait(("document.querySelector('.legend .value').title === '%s'"):format(last))
    child.write(path, text)
    page:wait "document.querySelector('.legend .value').title === '1e-05'"
  end)

  it("says why a run ended, and shows text as text", function()
    show({ view = "run", run = ids.broken }, "document.querySelector('pre.error')")
    assert.equal(fixtures.error, text_of "pre.error")
    show({ view = "run", run = ids.killed }, "document.querySelector('p.error')")
    assert.matches("it was killed", text_of "p.error")
    show({ view = "media", run = ids.media, media = "text" },
      "document.querySelector('.card.text pre')")
    assert.matches(fixtures.hostile, text_of ".card.text pre", 1, true)
    show({ view = "console", run = ids.media }, "document.querySelector('pre.console')?.innerText")
    assert.equal("epoch 0: 100%\nrun 2\n", text_of "pre.console")
    assert.is_nil(page:eval "document.querySelector('img[src=\"x\"]')?.outerHTML")
    assert.matches("ltrain dashboard$", page:eval "document.title")
  end)

  it("shows images and histograms by step", function()
    show({ view = "media", run = ids.media, media = "image" },
      "document.querySelector('.images img')?.naturalWidth === 16")
    assert.equal("step 300", text_of ".card output")
    page:eval [[(() => { const slider = document.querySelector(".card input[type=range]");
      slider.value = "0"; slider.dispatchEvent(new Event("input")); })()]]
    assert.equal("step 100", text_of ".card output")
    show({ media = "histogram" }, "document.querySelectorAll('.bars rect').length === 30")
  end)

  it("opens the failing samples beside the curve, by keys", function()
    show({ view = "curves", drawn = { ids.media }, metrics = "train_loss" },
      "document.querySelectorAll('.card').length === 1 && document.querySelector('.mark')")
    page:eval "document.querySelector('.mark').focus()"
    page:press "Enter"
    page:wait "document.querySelector('dialog').open"
    local said = text_of "dialog"
    assert.matches("train_loss at step 150", said, 1, true)
    assert.matches("sample 17 of the batch, loss 88.125", said, 1, true)
    page:wait "document.querySelector('dialog img').naturalWidth === 16"
    page:eval "document.styleSheets[1].insertRule('dialog .samples { min-height: 3000px }')"
    page:press "Escape"
    page:wait "!document.querySelector('dialog').open"
    page:eval "document.querySelector('.mark').focus()"
    page:press "Enter"
    page:wait "document.querySelector('dialog').open"
    assert.equal("0 H2", page:eval [[document.querySelector("dialog").scrollTop + " "
      + document.activeElement.tagName]])
    page:eval "document.styleSheets[1].deleteRule(0)"
    page:press "Escape"
    page:wait "!document.querySelector('dialog').open"
  end)

  it("has what the ranks measured", function()
    show({ view = "system", run = ids.media }, "document.querySelectorAll('.card').length === 3")
    assert.same({ "59.9", "100.0 MiB", "25 %", "0 %" }, page:eval
      "[...document.querySelectorAll('.legend .value')].map((one) => one.innerText)")
    assert.matches("0\t0 %\t56.95\t100.0 MiB\n1\t12.5 %\t56.95\t101.0 MiB",
      text_of ".below table", 1, true)
    assert.equal("0 %", text_of ".slowest")
  end)

  it("has statistics of layers, and those that have lost values", function()
    show({ view = "layers", run = ids.media }, "document.querySelectorAll('.bars').length === 2")
    assert.matches("^body.1.weight\t%[8, 2%]\t0.5\t0.047619\t2\t0.047619\t2\t1",
      text_of "tr[data-layer='body.1.weight']")
    assert.matches("8 weights not finite", text_of "tr.wrong[data-layer='body.1.bias']")
    page:eval "document.querySelector('tr.wrong button').click()"
    page:wait "document.querySelector('tr.current').dataset.layer === 'body.1.bias'"
    assert.equal(0, page:eval "document.querySelectorAll('.bars').length")
  end)

  it("compares two runs", function()
    show({ view = "diff", a = ids.finished, b = ids.media },
      "document.querySelector('.diff-body table')")
    local said = text_of ".diff-body"
    assert.matches("lr\t0.05\t0.03333333333333333", said, 1, true)
    assert.matches(last_of(table_of(root .. "/media/metrics.csv"), "val_loss"), said, 1, true)
  end)

  it("says of a chart without a point why it has none", function()
    show({ view = "curves", drawn = { ids.tiny }, metrics = "train_loss", x = "epoch",
      logx = true },
      "document.querySelector('.card .note')?.innerText.startsWith('all at epoch 0, which')")
    -- A long note leaves the name of the metric its room.
    assert.is_true(page:eval "document.querySelector('.card h3').offsetHeight < 40")
    show({ x = "step", logx = false, metrics = "" },
      "document.querySelectorAll('.card').length > 1")
  end)

  it("has a table of what the drawn runs came to", function()
    show({ view = "values", drawn = { ids.finished, ids.broken } },
      "document.querySelectorAll('table.values tbody tr').length === 2")
    local rows = table_of(root .. "/broken/metrics.csv")
    local shown = page:eval(([[document.querySelector(
      'main [data-id="%s"] [data-metric=train_loss]').firstChild.textContent]]):format(ids.broken))
    assert.equal(last_of(rows, "train_loss"), shown)
  end)

  it("is the same after a reload, and Back goes back", function()
    show({ view = "curves", drawn = { ids.media }, metrics = "lr", smooth = 0.5, logy = true },
      "document.querySelectorAll('.card').length === 1")
    page:call("Page.reload")
    page:wait [[document.querySelectorAll(".card").length === 1
      && document.querySelector(".legend .text")]]
    assert.equal("0.50 media", page:eval [[document.querySelector(".toolbar output").innerText + " "
      + document.querySelector(".legend .text").innerText]])
    show({ view = "values" }, "document.querySelector('table.values')")
    page:eval "history.back()"
    page:wait "document.querySelector('.toolbar output')"
    show({ smooth = 0, logy = false, metrics = "" },
      "document.querySelectorAll('.card').length > 1")
  end)

  local VIEWS <const> = { "curves", "values", "diff", "run", "system", "layers", "media",
    "console" }

  it("fits a phone, and has a name for all that is pressed", function()
    page:look { width = 390, height = 844, phone = true }
    for _, view in ipairs(VIEWS) do
      show({ view = view, run = ids.media, drawn = { ids.media, ids.finished } },
        ("document.querySelector('#view.%s > *')"):format(view))
      assert.equal(390, page:eval "document.documentElement.scrollWidth")
      assert.is_true(page:eval [[(() => { // the tab that is chosen is in sight
        const tabs = document.querySelector("#tabs").getBoundingClientRect();
        const chosen = document.querySelector("#tabs [aria-current]").getBoundingClientRect();
        return chosen.left >= tabs.left - 1 && chosen.right <= tabs.right + 1;
      })()]], view)
      assert.equal("", page:eval [[[...document.querySelectorAll("button, input, select")]
        .filter((one) => one.offsetParent && !one.innerText && !one.closest("label")
          && !one.getAttribute("aria-label"))
        .map((one) => one.outerHTML).join("\n")]])
    end
    page:look {}
  end)

  it("is reached by keys, and shows where they are", function()
    show({ view = "curves" }, "document.querySelector('.chart')")
    page:eval "document.activeElement.blur()"
    local places = {}
    for _ = 1, 60 do
      page:press "Tab"
      local place = page:eval [[(() => { const one = document.activeElement;
        if (one === document.body) return "";
        return getComputedStyle(one).outlineStyle === "none" ? "no outline: " + one.outerHTML
          : one.className || one.tagName; })()]]
      places[place] = true
    end
    for place in pairs(places) do assert.is_nil(place:find "no outline", place) end
    for _, place in ipairs { "skip", "name", "chart", "small wide" } do
      assert.is_true(places[place], place)
    end
  end)

  it("follows the colours that are preferred", function()
    local function back() return page:eval "getComputedStyle(document.body).backgroundColor" end
    local light = back()
    page:look { dark = true }
    assert.equal("rgb(20, 23, 27)", back())
    page:look {}
    assert.equal(light, back())
  end)

  it("has no buttons that stop and save unless the server lets it", function()
    show({ view = "run", run = ids.goes_on }, "document.querySelector('.run-head')")
    assert.is_nil(page:eval "document.querySelector('button.stop, button.save')?.outerHTML")
  end)

  it("asks nobody else, and has no errors in its console", function()
    assert.equal("", table.concat(page.errors, "\n"))
    for _, url in ipairs(page.requests) do
      assert.is_truthy(url:find "^http://127%.0%.0%.1:%d+/" or url == "about:blank", url)
    end
    assert(#page.requests > 30, #page.requests)
  end)
end)

describe("the dashboard's page over", function()
  local function open(make, options, fn)
    local root = child.folder()
    make(root)
    do
      local server <close> = serve(root, options)
      local browser <close> = browsers.open()
      local page = browser:page {}
      page:go(server:address())
      page:wait "document.querySelector('#live.on')"
      fn(page, root)
      assert.equal("", table.concat(page.errors, "\n"))
    end
    child.remove(root)
  end

  it("an empty folder says how a run comes there, and shows it as it comes", function()
    open(function() end, nil, function(page, root)
      page:wait "document.querySelector('.empty h2')?.innerText === 'No runs yet'"
      fixtures.run(root .. "/first", 1, {})
      page:wait "document.querySelector('.legend .text')?.innerText === 'first'"
    end)
  end)

  it("600 metrics draws 500, and finds the others by their names", function()
    local function make(root)
      fixtures.run(root .. "/wide", 1, {})
      local names, values = {}, {}
      for k = 1, 600 do names[k], values[k] = ("layer/%03d"):format(k), k end
      child.write(root .. "/wide/metrics.csv", ("epoch,step,%s\n0,0,%s\n"):format(
        table.concat(names, ","), table.concat(values, ",")))
    end
    open(make, nil, function(page)
      page:wait "document.querySelectorAll('.card').length === 500"
      assert.matches("^100 more metrics", page:eval "document.querySelector('p.more').innerText")
      page:eval [[import("/static/state.js").then(({ set }) => set({ metrics: "600" }))]]
      page:wait "document.querySelector('.legend .value')?.innerText === '600'"
      assert.equal(1, page:eval "document.querySelectorAll('.card').length")
    end)
  end)

  it("long names keeps within its columns", function()
    local function make(root)
      local name = ("a_run_of_a_long_name"):rep(4)
      fixtures.run(("%s/%s"):format(root, name), 1, {})
      child.write(("%s/%s/metrics.csv"):format(root, name), ("epoch,step,%s\n0,0,1\n0,1,2\n")
        :format(("Monitor.on_train_batch_start/percent"):rep(3)))
    end
    open(make, nil, function(page)
      page:wait "document.querySelector('.card') && document.querySelector('#runs select')"
      for _, width in ipairs { 1280, 390 } do
        page:look { width = width, height = 800, phone = width < 400 }
        assert.equal(width, page:eval "document.documentElement.scrollWidth")
        assert.equal("", page:eval [[(() => {
          const edge = document.querySelector("#runs").getBoundingClientRect().right;
          return [...document.querySelectorAll("#runs *")]
            .filter((one) => one.getBoundingClientRect().right > edge + 1)
            .map((one) => one.tagName).join(" ");
        })()]])
      end
    end)
  end)

  it("500 runs lists them all and draws 20 at most", function()
    open(function(root) fixtures.many(root, 500) end, nil, function(page)
      page:wait "document.querySelectorAll('#runs li').length === 500"
      page:eval [[[...document.querySelectorAll("button")]
        .find((one) => one.innerText === "Draw 20").click()]]
      page:wait "document.querySelectorAll('#runs input:checked').length === 20"
      page:eval "document.querySelector('#runs li:nth-child(30) input').click()"
      assert.matches("^20 runs are drawn",
        page:eval "document.querySelector('#runs .count').innerText")
      assert.equal(20, page:eval "document.querySelectorAll('#runs input:checked').length")
    end)
  end)

  it("runs without times, or without dygraphs, says so", function()
    open(function(root) fixtures.run(root .. "/one", 1, {}) end, nil, function(page)
      page:eval [[import("/static/state.js").then(({ set }) => set({ x: "time" }))]]
      page:wait "document.querySelector('.note')?.innerText.startsWith('one: this run has')"
      page:call("Network.setBlockedURLs", { urls = { "*dygraph*" } })
      page:call("Page.reload")
      page:wait "document.querySelector('#notice').innerText.includes('has no charts')"
      page:eval "document.querySelector('#runs .name').click()"
      page:wait "document.querySelector('table.metrics')"
      for i, text in ipairs(page.errors) do
        if text:find "dygraph" then page.errors[i] = "" end
      end
    end)
  end)

  it("a server that was started again says that the session has ended", function()
    local root = child.folder()
    local browser <close> = browsers.open()
    local page
    local port = 20000 + c.runtime.pid() % 10000 -- not one that other dashboards look for
    do
      local first <close> = serve(root, "--port " .. port)
      page = browser:page {}
      page:go(first:address())
      page:wait "document.querySelector('#live.on')"
    end
    page:wait "document.querySelector('#live.off')"
    local second <close> = serve(root, "--port " .. port)
    second:address()
    page:wait "document.querySelector('#notice').innerText.startsWith('This session has ended')"
    child.remove(root)
  end)

  it("a run with control has the buttons, and says when it does not listen", function()
    open(function(root) fixtures.kinds(root, true) end, "--dashboard_control true", function(page)
      page:eval [[[...document.querySelectorAll("#runs .name")].find((one) =>
        one.innerText.startsWith("goes_on")).click()]]
      page:wait "document.querySelector('button.save').disabled"
      assert.is_truthy(page:eval "document.querySelector('button.stop')?.disabled")
      assert.matches("It does not listen", page:eval "document.querySelector('main').innerText")
    end)
  end)
end)
