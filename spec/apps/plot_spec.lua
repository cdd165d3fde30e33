-- spec/apps/plot_spec.lua: `ltrain plot` and `ltrain compare` over the folders of runs.
local axis = require "ltrain.apps.views.axis"
local c = require "ltrain.c"
local child = require "spec.cli.child"
local series = require "ltrain.apps.views.series"
local svg_chart = require "ltrain.apps.views.svg_chart"
local terminal_chart = require "ltrain.apps.views.terminal_chart"

local root
before_each(function() root = child.folder() end)
after_each(function() child.remove(root) end)

local function write(name, files)
  for file, text in pairs(files) do
    assert(c.io.make_folder(root .. "/" .. name))
    child.write(("%s/%s/%s"):format(root, name, file), text)
  end
end

local function ltrain(...)
  return child.run({ ... }, { dir = root, env = { LC_ALL = "C.UTF-8" } })
end

local function run_json(fields)
  return c.io.json_encode(fields, { plain = true })
end

local function two_runs()
  write("logs/a", { ["metrics.csv"] = "epoch,step,loss,acc\n0,0,4,\n0,1,2,0.5\n1,2,3,0.75\n",
    ["hparams.json"] = '{"lr": 0.1, "same": 1, "net": {"width": 8}}',
    ["run.json"] = run_json { format = 1, status = "finished", started = 100, ended = 175 } })
  write("logs/b", { ["metrics.csv"] = "epoch,step,loss\n0,0,1\n0,1,nan\n",
    ["hparams.json"] = '{"lr": 0.2, "same": 1, "net": {"width": 16}}',
    ["run.json"] = run_json { format = 1, status = "failed", started = 100, ended = 100.5,
      error = "it broke\nhere" } })
end

describe("ltrain plot", function()
  it("draws a line in braille", function()
    write("a", { ["metrics.csv"] = "epoch,step,loss\n0,0,0\n0,10,1\n" })
    local code, out = ltrain("plot", "a")
    assert.equal(0, code)
    local rows = {}
    for row in out:gmatch "[^\n]+" do rows[#rows + 1] = row end
    assert.equal("loss", rows[1])
    assert.matches("^  1 │ +⢀⡠⠤⠒⠉$", rows[2])
    assert.matches("^  0 │⣀⠤", rows[16])
    assert.matches("^     0 +step 10$", rows[18])
  end)

  it("tells several lines apart by letters where there are no colours", function()
    two_runs()
    local code, out = ltrain("plot", "logs", "--metric", "loss")
    assert.equal(0, code)
    assert.matches("^loss %(1 value left out: not finite%)\n", out)
    assert.matches("\n  a a\n  b b\n$", out)
    assert.matches("a", out:match "|([^\n]*)")
    assert.is_nil(out:find "\27")
  end)

  it("draws what there is of runs without values, with one, and with equal ones", function()
    write("empty", { ["metrics.csv"] = "epoch,step,loss\n0,0,nan\n0,1,inf\n" })
    write("one", { ["metrics.csv"] = "epoch,step,loss\n3,7,5\n" })
    write("flat", { ["metrics.csv"] = "epoch,step,loss\n0,0,2\n0,9,2\n" })
    local code, out = ltrain("plot", "empty")
    assert.equal(0, code)
    assert.matches("2 values left out: not finite%)\n  %(nothing to draw%)", out)
    assert.equal(0, (ltrain("plot", "one", "--log_y", "true")))
    code, out = ltrain("plot", "flat")
    assert.equal(0, code)
    assert.matches("2%.2 │", out)
  end)

  it("writes an SVG that is well-formed, with names as they are", function()
    write("a<b", { ["metrics.csv"] = 'epoch,step,"x&y"\n0,0,1\n0,1,2\n' })
    write("c", { ["metrics.csv"] = 'epoch,step,"x&y"\n0,0,3\n0,1,2\n' })
    local code, out = ltrain("plot", "a<b", "c", "--svg", "x.svg")
    assert.same({ 0, "wrote x.svg: 1 chart of 2 runs\n" }, { code, out })
    local text = c.io.read_file(root .. "/x.svg")
    assert.matches("^<svg xmlns=", text)
    assert.matches(">x&amp;y</text>", text)
    assert.matches(">a&lt;b</text>", text)
    local _, lines = text:gsub("<polyline ", "")
    assert.equal(2, lines)
  end)

  it("says what is wrong", function()
    write("new", { ["run.json"] = run_json { format = 1, status = "running" } })
    write("old", { ["metrics.csv"] = "epoch,step,loss\n0,0,1\n" })
    for wrong, words in pairs {
      ["ltrain: plot: which runs? (there is no folder ltrain_logs here)\n"] = { "plot" },
      ["ltrain: plot: absent: there is no such folder\n"] = { "plot", "absent" },
      ["ltrain: plot: new: has no metrics yet\n"] = { "plot", "new" },
      ["ltrain: plot: no run has a metric 'lost'; did you mean 'loss'?; there is: loss\n"] =
        { "plot", "old", "--metric", "lost" },
      ["ltrain: compare: no run has a metric 'lost'; did you mean 'loss'?\n"] =
        { "compare", "old", "--metric", "lost" },
    } do
      local code, out, err = ltrain(table.unpack(words))
      assert.same({ 1, "", wrong }, { code, out, err })
    end
    local code, _, err = ltrain("plot", "old", "--x", "time")
    assert.equal(2, code)
    assert.matches("plot: %-%-x must be 'step' or 'epoch': got 'time'", err)
    write("later", { ["run.json"] = '{"format": 9}' })
    assert.matches("later/run.json: has format 9, this version of ltrain reads up to 1",
      select(3, ltrain("plot", "later")))
    assert.equal(0, (ltrain("plot", "."))) -- the others are drawn, with a warning
    assert.matches("warning: .*later/run.json: has format 9", select(3, ltrain("plot", ".")))
  end)
end)

describe("ltrain compare", function()
  it("shows what differs, and the last and best values", function()
    two_runs()
    local code, out = ltrain("compare", "logs")
    assert.same({ 0, table.concat({
      "run  status    time   lr   net.width  acc   max acc  loss  min loss",
      "a    finished  1m15s  0.1  8          0.75  0.75     3     2",
      "b    failed    0.5s   0.2  16         -     -        nan   1",
      "logs/b: it broke", "",
    }, "\n") }, { code, out })
  end)

  it("sorts by the metric that is asked for", function()
    two_runs()
    local _, out = ltrain("compare", "logs", "--metric", "loss")
    assert.matches("\nb .*\na ", out)
    _, out = ltrain("compare", "logs", "--metric", "acc")
    assert.matches("\na .*\nb ", out)
  end)
end)

describe("lines of charts", function()
  local run = { metrics = { a = { steps = { 0, 1, 2, 3 }, epochs = { 0, 0, 1, 1 },
    values = { 1, 3, 0 / 0, 100 } } } }

  it("are smoothed as TensorBoard does it", function()
    local line = series.line(run, "a", "", { x = "step", smooth = 0.5 })
    -- 0.5 / 0.5, (0.5 * 0.5 + 0.5 * 3) / 0.75, then 100 after two
    local second = (0.25 + 1.5) / 0.75
    local third = (0.25 / 2 + 1.5 / 2 + 50) / 0.875
    assert.same({ { 0, 1 }, { 1, second }, { 3, third } }, line.points)
    assert.equal(1, line.left_out)
  end)

  it("stand over steps or epochs, as they are or as logarithms", function()
    local line = series.line(run, "a", "", { x = "epoch", smooth = 0, log_y = true })
    assert.same({ 0, 0, 1 }, { line.points[1][1], line.points[2][1], line.points[3][1] })
    assert.is_true(math.abs(line.points[3][2] - 2) < 1e-12)
    assert.equal("1.5e-7", axis.text(1.5e-7))
  end)

  it("keep their extremes when they are thinned out", function()
    local steps, values = {}, {}
    for i = 1, 50000 do steps[i], values[i] = i, i == 777 and -5 or i == 40001 and 9 or 0 end
    local long = { steps = steps, epochs = steps, values = values }
    local line = series.line({ metrics = { a = long } }, "a", "", { x = "step", smooth = 0 })
    assert.is_true(#line.points <= 2000)
    assert.same({ -5, 9 }, { select(3, series.span { line }) })
  end)

  -- The places of ticks, and their texts.
  local function ticks(...)
    local places, texts = {}, {}
    for i, tick in ipairs(axis.ticks(...)) do
      places[i], texts[i] = tick.at, tick.text or ""
    end
    return places, table.concat(texts, " ")
  end

  it("have round numbers at their axes", function()
    assert.same({ 0.0, 0.5, 1.0, 1.5, 2.0 }, (ticks(-0.2, 2.1, 5)))
    assert.same({ 20.0, 40.0, 60.0 }, (ticks(10, 70, 4)))
  end)

  for name, row in pairs {
    ["close values"] = { { 0.9999, 0.99995, 5 }, "0.9999 0.99991 0.99992 0.99993 0.99994 0.99995" },
    ["values close to a million"] = { { 1000000, 1000004, 4 },
      "1000000 1000001 1000002 1000003 1000004" },
    ["values close to a thousand million"] = { { 1e9, 1e9 + 2, 2 },
      "1000000000 1000000001 1000000002" },
    ["millions"] = { { 0, 2e6, 4 }, "0 5e5 1e6 1.5e6 2e6" },
    ["small values"] = { { 0, 4e-7, 4 }, "0 1e-7 2e-7 3e-7 4e-7" },
    ["values on both sides of 0"] = { { -1, 1, 4 }, "-1 -0.5 0 0.5 1" },
    ["a short logarithmic axis"] = { { -1, 1, 5, true },
      "0.1 0.2   0.5     1 2   5     10" },
    ["powers of ten"] = { { -6, 30, 5, true },
      "0.0001 1 10000 1e8 1e12 1e16 1e20 1e24 1e28" },
    ["less than a factor of two"] = { { math.log(3, 10), math.log(4, 10), 5, true },
      "3 3.2 3.4 3.6 3.8 4" },
  } do
    it("tell ticks apart: " .. name, function()
      assert.equal(row[2], select(2, ticks(table.unpack(row[1]))))
    end)
  end

  it("have minor ticks between the powers of ten", function()
    local places = ticks(0, 2, 5, true)
    assert.equal(19, #places)
    assert.is_true(math.abs(places[3] - math.log(3, 10)) < 1e-12)
  end)

  it("have ends that differ", function()
    assert.same({ "100001", "100005" }, { axis.ends(100001, 100005) })
    assert.same({ "0.9999", "0.99991" }, { axis.ends(0.9999, 0.99991) })
    assert.same({ "1e-6", "0.5" }, { axis.ends(-6, math.log(0.5, 10), true) })
  end)

  it("are distinguished in an SVG, however many there are", function()
    local lines, strokes = {}, {}
    for k = 1, 20 do lines[k] = { label = "x", points = { { 0, k }, { 1, k } } } end
    local text = svg_chart { { lines = lines, title = "t", x = "step" } }
    for stroke in text:gmatch "<polyline points=\"[^\"]*\" ([^/]*)/>" do
      assert.is_nil(strokes[stroke])
      strokes[stroke] = true
    end
    assert.is_truthy(next(strokes))
  end)

  it("may be without a point", function()
    local none = { { label = "x", points = {} } }
    assert.same({ "t", "  (nothing to draw)" }, terminal_chart.rows(none, { title = "t" }))
    assert.matches("</svg>\n$", svg_chart { { lines = none, title = "t", x = "step" } })
  end)
end)

describe("a run with a pipe or a device in place of a file", function()
  for file, make in pairs { ["run.json"] = "mkfifo", ["metrics.csv"] = "ln -s /dev/zero",
    ["hparams.json"] = "mkfifo" } do
    it(("is refused by every command that reads runs: %s"):format(file), function()
      two_runs()
      assert(os.execute(("cd %s/logs/a && rm -f %s && %s %s"):format(root, file, make, file)))
      for _, word in ipairs { "plot", "compare" } do
        local code, _, err = ltrain(word, "logs/a")
        assert.equal(1, code)
        assert.matches("not a plain file: logs/a/" .. file, err, 1, true)
      end
      assert.equal(1, (ltrain("inspect", "logs/a")))
    end)
  end

  it("ends on SIGTERM while it waits for standard input", function()
    child.write(root .. "/read.lua", 'require "ltrain".csv.read "/dev/stdin"')
    local _, out = child.shell([[
      mkfifo open
      exec 9<>open
      ltrain run read.lua <open &
      sleep 0.3
      kill -TERM $!
      wait $! || echo "status $?"]], { dir = root, seconds = 20 })
    assert.matches("status 143", out)
  end)
end)
