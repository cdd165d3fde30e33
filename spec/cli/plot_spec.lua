-- spec/cli/plot_spec.lua: `ltrain plot` and `ltrain compare` over the folders of runs.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local series = require "ltrain.runs.series"
local svg_chart = require "ltrain.runs.svg_chart"
local terminal_chart = require "ltrain.runs.terminal_chart"

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
    assert.equal("100", series.text(2, true))
    assert.equal("1.5e-7", series.text(1.5e-7))
  end)

  it("keep their extremes when they are thinned out", function()
    local steps, values = {}, {}
    for i = 1, 50000 do steps[i], values[i] = i, i == 777 and -5 or i == 40001 and 9 or 0 end
    local long = { steps = steps, epochs = steps, values = values }
    local line = series.line({ metrics = { a = long } }, "a", "", { x = "step", smooth = 0 })
    assert.is_true(#line.points <= 2000)
    assert.same({ -5, 9 }, { select(3, series.span { line }) })
  end)

  it("have round numbers at their axes", function()
    assert.same({ 0.0, 0.5, 1.0, 1.5, 2.0 }, series.ticks(-0.2, 2.1, 5))
    assert.same({ 20.0, 40.0, 60.0 }, series.ticks(10, 70, 4))
  end)

  it("may be without a point", function()
    local none = { { label = "x", points = {} } }
    assert.same({ "t", "  (nothing to draw)" }, terminal_chart(none, { title = "t" }))
    assert.matches("</svg>\n$", svg_chart { { lines = none, title = "t", x = "step" } })
  end)
end)
