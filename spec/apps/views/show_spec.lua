-- spec/apps/views/show_spec.lua: matrices and images as blocks, series as lines, weights as
-- histograms.
local child = require "spec.cli.child"
local lt = require "ltrain"
local error_of = require "spec.error_of"

local UTF8 <const> = { LC_ALL = "C.UTF-8" }

-- What a script prints through a pipe; env: of the process.
local function printed(code, env)
  local status, out, err = child.run({ "-e", code }, { env = env or UTF8 })
  assert.equal("", err)
  assert.equal(0, status)
  return out
end

describe("x:show", function()
  it("prints shape, dtype, range and the matrix in shades", function()
    assert.equal("[3, 3] f32, 0 to 1\n██\n  ██\n    ██\n", printed "lt.eye(3):show()")
    assert.equal("[2, 2] i64, 1 to 4\n  ░░\n▓▓██\n", printed "lt.tensor{{1, 2}, {3, 4}}:show()")
    assert.equal("[2] bool, 0 to 1\n  ██\n", printed "lt.tensor{1, 3}:gt(2):show()")
  end)

  it("has letters where the terminal has no others", function()
    assert.equal("[2, 2] f32, 0 to 1\n@@\n  @@\n", printed("lt.eye(2):show()", { LC_ALL = "C" }))
  end)

  it("marks what is not finite, also within a mean", function()
    assert.equal("[3] f32, 1 to 1, 2 not finite (nan is ??, inf is ^^)\n??^^\n",
      printed "lt.tensor{0/0, math.huge, 1}:show()")
    assert.equal("[4] f32, 5 to 7, 1 not finite (nan is ??), shown as 1 x 2 means\n??\n",
      printed "lt.tensor{0/0, 5, 7, 7}:show{width = 4}")
  end)

  it("is as wide as is asked for, and bounded", function()
    local out = printed "lt.rand(300, 500):show{width = 30}"
    local rows = 0
    for row in out:gmatch "\n([^\n]+)" do
      rows = rows + 1
      assert(utf8.len(row) <= 30, row)
    end
    assert(rows <= 32, rows)
    assert.matches("^%[300, 500%] f32, [%d.e-]+ to [%d.e-]+, shown as 32 x 15 means\n", out)
  end)

  it("shows images by how light they are, between 0 and 255 or 0 and 1", function()
    assert.equal("[1, 1, 2] u8, 0 to 100\n  ░░\n",
      printed "lt.tensor({{{0, 100}}}, {dtype = 'u8'}):show()")
    assert.equal("[3, 1, 2] f32, 0 to 1\n██  \n",
      (printed "local x = lt.zeros(3, 1, 2) x[{lt.all, 1, 1}] = 1 x:show()":gsub("██\n", "██  \n")))
  end)

  it("is coloured on a terminal, as deep as that is", function()
    local line <const> = "ltrain -e 'lt.eye(2):show()'"
    local env = { TERM = "xterm", LC_ALL = "C.UTF-8", COLORTERM = "truecolor" }
    local status, out = child.on_terminal(line, { env = env })
    if not status then return pending "script is missing" end
    assert.matches("\27[38;2;253;231;37;48;2;68;1;84m▀\27[38;2;68;1;84;48;2;253;231;37m▀\27[0m",
      out, 1, true)
    env.COLORTERM = ""
    out = select(2, child.on_terminal(line, { env = env }))
    assert.matches("\27[38;5;", out, 1, true)
    env.NO_COLOR = "1"
    status, out = child.on_terminal(line, { env = env })
    assert.equal(0, status)
    assert.not_matches("\27", out, 1, true)
  end)

  it("returns nothing, leaves x and takes parameters", function()
    assert.equal("[1] f32, 2 to 2\n\n0\n",
      printed "print(select('#', lt.parameter(lt.full({1}, 2.0)):show()))")
    assert.equal("[0, 3] f32, empty\n", printed "lt.zeros(0, 3):show()")
  end)

  it("refuses what is not a picture", function()
    assert.matches("show: needs a vector, a matrix %[H, W%] or an image %[C, H, W%]",
      error_of(lt.show, lt.zeros(2, 2, 2)))
    assert.matches("show: needs a tensor: got 3$", error_of(lt.show, 3))
  end)
end)

describe("lt.plot", function()
  it("draws a list or a tensor, and counts what cannot be drawn", function()
    local out = printed "lt.plot({1, 2, 4, 8, 0/0}, {title = 'loss', height = 3})"
    assert.matches("^loss %(1 value left out: not finite%)\n +8 │", out)
    assert.equal(printed "lt.plot({1, 2, 3})", printed "lt.plot(lt.tensor{1.0, 2.0, 3.0})")
    assert.equal("0\n", printed("print(select('#', lt.plot({1, 2})))"):match "[^\n]*\n$")
    assert.equal("  (nothing to draw)\n", printed "lt.plot {}") -- no line for a title that is not
    assert.matches("^ *3 ", printed "lt.plot({1, 2, 3})")
  end)

  it("draws several, with a legend", function()
    assert.matches("\n  a train\n  b val\n$",
      printed "lt.plot({val = {1, 2}, train = lt.tensor{2, 1}}, {log_y = true})")
  end)

  it("writes an SVG", function()
    local folder = child.folder()
    assert.is_true(lt.plot({ 1, 2, 3 }, { file = folder .. "/a.svg", title = "a < b" }))
    local file <close> = assert(io.open(folder .. "/a.svg"))
    local text = file:read "a"
    assert.matches("^<svg ", text)
    assert.matches("a &lt; b", text, 1, true)
    assert.matches("<polyline points=\"[%d., ]+\"", text)
    local done, message = lt.plot({ 1 }, { file = folder .. "/none/a.svg" })
    assert.is_nil(done)
    assert.matches("none/a.svg: No such file", message, 1, true)
    child.remove(folder)
  end)

  it("writes no other kind of file, and 0 as 0", function()
    local ok, message = pcall(lt.plot, { 1, 2 }, { file = "loss.png" })
    assert.is_false(ok)
    assert.matches("plot: file must end in .svg, which is what is written: got 'loss.png'", message,
      1, true)
    assert.not_matches("e%-1%d", printed "lt.plot({-1, 1 - 1e-13})")
  end)

  it("says what it cannot draw", function()
    assert.matches("plot: the series must be a list of numbers or a tensor %[N%]: got 'x'$",
      error_of(lt.plot, "x"))
    assert.matches("plot: the series%[2%] must be a number: got 'x'$",
      error_of(lt.plot, { 1, "x" }))
    assert.matches("plot: x has 2 values, 'b' 1$",
      error_of(lt.plot, { a = { 1, 2 }, b = { 1 } }, { x = { 1, 2 } }))
  end)
end)

describe("lt.plot of another kind", function()
  it("draws points without lines, of tensors [N, 2] too", function()
    local out = printed("lt.plot({a = lt.tensor{{0.0, 0.0}, {9, 9}}, b = {4, 5}},"
      .. " {kind = 'scatter', x = {1, 5}, height = 3})")
    assert.equal("9 |", out:match "^ *(9 |)")
    assert.equal(2, select(2, out:gsub("\n  [ab] [ab]%f[\n]", "")))
    local drawn = out:match "^(.-)\n *%+"
    assert.same({ 2, 2 }, { select(2, drawn:gsub("a", "")), select(2, drawn:gsub("b", "")) })
  end)

  it("draws lines that have places of their own", function()
    local out = printed "lt.plot({a = {1, 2}, b = {1, 2}}, {x = {a = {0, 1}, b = {5, 9}}})"
    assert.matches("\n +0 +9\n", out)
  end)

  it("draws bars with names and values, of negative values to the left", function()
    local out = printed "lt.plot({up = 1, down = -0.123456}, {kind = 'bar', title = 't'})"
    assert.matches("^t\ndown │█[^\n ]* %-0.12346\n  up │ +█[^ ]* 1\n$", out)
    assert.matches("^cat │[^\n]* 3\ndog │[^\n]* 5\n$",
      printed "lt.plot(lt.tensor{3, 5}, {kind = 'bar', labels = {'cat', 'dog'}})")
  end)

  it("draws a heat map with its values and names", function()
    local matrix = "lt.plot(lt.tensor{{5, 1}, {0, 12}}, {kind = 'heatmap', labels = {'cat', 'dog'}"
    assert.equal("     cat  dog\ncat    5    1\ndog    0   12\n",
      (printed(matrix .. "})")))
    assert.matches("\nrows: true, columns: predicted\n$",
      printed(matrix .. ", x_label = 'predicted', y_label = 'true'})"))
  end)

  it("writes them as an SVG, with whole values on hover and colours for dark pages", function()
    local folder = child.folder()
    for kind, values in pairs { bar = { a = 1 / 3 }, heatmap = { { 1 / 3 } }, line = { 1 / 3, 1 },
      scatter = { 1 / 3 } } do
      assert.is_true(lt.plot(values, { kind = kind, file = folder .. "/a.svg" }))
      local file <close> = assert(io.open(folder .. "/a.svg"))
      local text = file:read "a"
      assert.matches("0.33333333333333331</title>", text, 1, true)
      assert.matches("prefers-color-scheme: dark", text, 1, true)
    end
    child.remove(folder)
  end)

  it("says what it cannot draw", function()
    assert.matches("plot: smooth has no meaning with kind = 'bar'$",
      error_of(lt.plot, { 1 }, { kind = "bar", smooth = 0.5 }))
    assert.matches("plot: labels has 1 names for 2: got ",
      error_of(lt.plot, { { 1, 2 } }, { kind = "heatmap", labels = { "a" } }))
    assert.matches("plot: there are 1 labels for 2 bars$",
      error_of(lt.plot, { 1, 2 }, { kind = "bar", labels = { "a" } }))
    assert.matches("plot: a heat map needs a matrix %[R, C%]: got a tensor %[2%]$",
      error_of(lt.plot, lt.ones(2), { kind = "heatmap" }))
    assert.matches("plot: row 2 has 1 values, row 1 2$",
      error_of(lt.plot, { { 1, 2 }, { 1 } }, { kind = "heatmap" }))
  end)
end)

describe("metric:plot", function()
  it("draws a confusion matrix as a heat map", function()
    local out = printed [[local m = lt.metrics.ConfusionMatrix{num_classes = 2}
      m:update(lt.tensor{0, 1, 1}, lt.tensor{0, 1, 0}) m:plot{labels = {"cat", "dog"}}]]
    assert.equal("ConfusionMatrix\n     cat  dog\ncat    1    1\ndog    0    1\n"
      .. "rows: true, columns: predicted\n", out)
  end)

  it("draws curves as lines", function()
    local roc = "local m = lt.metrics.ROC() m:update(lt.tensor{0.1, 0.8}, lt.tensor{0, 1}) "
    assert.matches("^ROC\n.*false positive rate 1\n  y: true positive rate\n$",
      printed(roc .. "m:plot()"))
    assert.matches("^PrecisionRecallCurve\n.*\n  a class 0\n  b class 1\n$",
      printed("local m = lt.metrics.PrecisionRecallCurve{num_classes = 2} "
        .. "m:update(lt.tensor{{0.1, 0.9}, {0.8, 0.2}}, lt.tensor{1, 0}) m:plot()"))
  end)

  it("draws numbers as bars, and several calls as a line", function()
    local mean = "local m = lt.metrics.Mean() local list = {} "
      .. "for i = 1, 3 do list[i] = m(lt.tensor{i + 0.0}) end "
    assert.matches("^Mean\nMean │█[^\n ]* 2\n$", printed(mean .. "m:plot()"))
    assert.matches("^Mean\n +3 │.*call 3\n$", printed(mean .. "m:plot{values = list}"))
    assert.matches("^MetricCollection\n *high │█[^\n ]* 3\n *mean │█[^\n ]* 2\n$",
      printed("local m = lt.metrics.MetricCollection{mean = lt.metrics.Mean(), "
        .. "high = lt.metrics.Max()} m:update(lt.tensor{1.0, 3}) m:plot()"))
    assert.matches("plot: values must be a list of what metric%(...%) or compute returned: got 3$",
      error_of(lt.metrics.Mean().plot, lt.metrics.Mean(), { values = 3 }))
  end)
end)

describe("module:show_histograms", function()
  local NET <const> = "local net = lt.nn.Sequential(lt.nn.Linear(2, 1)) "
    .. "net[1].weight:detach():copy_(lt.tensor{{0.0, 1.0}}) net[1].bias:detach():fill_(3) "

  it("has a row for each parameter, and after backward one for its gradient", function()
    assert.equal("Sequential       min histogram  max  mean  std\n"
      .. "0.weight [1, 2]    0 ▁        ▁ 1     0.5  0.5\n"
      .. "0.bias [1]         3            3       3    0  all 3\n",
      printed(NET .. "net:show_histograms{bins = 10}"))
    assert.matches("\n  gradient +2 .* 2 +2 +0  all 2\n",
      printed(NET .. "net(lt.ones(2, 2)):sum():backward() net:show_histograms()"))
  end)

  it("says of a parameter that it is frozen, has no gradient, or is not finite", function()
    local out = printed(NET .. "net[1].bias.requires_grad = false "
      .. "net(lt.ones(2, 2)):sum():backward() net[1].weight:detach():fill_(0/0) "
      .. "net:show_histograms()")
    assert.matches("0%.weight [^\n]* 2 of 2 not finite\n", out)
    assert.matches("0%.bias [^\n]*\n  frozen\n$", out)
  end)

  it("shows the names that are asked for", function()
    local out = printed(NET .. "net:show_histograms{match = 'bias'}")
    assert.matches("0.bias", out, 1, true)
    assert.not_matches("0.weight", out, 1, true)
    assert.matches("  no parameters match\n$", printed(NET .. "net:show_histograms{match = 'z'}"))
    assert.matches("show_histograms: needs a module: got 3$", error_of(lt.show_histograms, 3))
  end)
end)
