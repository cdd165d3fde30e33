-- spec/apps/sweep_spec.lua: `ltrain sweep`: which trials there are, how they end, and how a sweep
-- goes on that was ended.
-- tags: slow, third
local c = require "ltrain.c"
local child = require "spec.cli.child"
local lt = require "ltrain"
local search_space = require "ltrain.apps.sweep.search_space"
local servers = require "spec.apps.dashboard.server"

local SCRIPT <const> = [[
local lt = require "ltrain"
local args = lt.args{lr = 0.1, width = 4, fail = "", slow = 0.0}
local net = lt.nn.Linear(1, 1)
net.w = lt.parameter(lt.tensor{0.0})
function net:training_step()
  if args.fail == "step" and args.width == 8 then error "width 8 is bad" end
  local began = os.clock()
  while os.clock() - began < args.slow do end -- os.execute would keep SIGINT out
  return (self.w - 1):square():sum()
end
function net:validation_step()
  self:log("val_loss", (self.w - 1):square():sum(), {batch_size = 1})
end
function net:configure_optimizers() return lt.optim.SGD({self.w}, {lr = args.lr}) end
if args.fail == "start" and args.width == 8 then error "width 8 is bad" end
return {model = net, data = {train = {1, 2}, val = {1}},
  trainer = {max_epochs = 1, num_sanity_val_steps = 0}}
]]

local root
before_each(function()
  root = child.folder()
  child.write(root .. "/model.lua", SCRIPT)
end)
after_each(function() child.remove(root) end)

local function sweep(...)
  return child.run({ "sweep", "model.lua", "--metric", "val_loss", "--dir", "s", ... },
    { dir = root })
end

-- The rows of sweep.csv, each a list of the named columns' texts.
local function rows(...)
  local text = c.io.read_file(root .. "/s/sweep.csv")
  local names, list = nil, {}
  for line in text:gmatch "[^\n]+" do
    local fields = {}
    for field in (line .. ","):gmatch "([^,]*)," do fields[#fields + 1] = field end
    if names then
      local row = {}
      for i, name in ipairs(names) do row[name] = fields[i] end
      local chosen = {}
      for i, name in ipairs { ... } do chosen[i] = row[name] end
      list[#list + 1] = table.concat(chosen, " ")
    else
      names = fields
    end
  end
  return list
end

describe("a sweep", function()
  it("runs the grid, each trial in the folder of a run, and says which is best", function()
    local code, out, err = sweep("--lr", "0.1,0.5", "--width", "4,8", "--jobs", "2")
    assert.equal(0, code, err)
    assert.same({ "1 finished 1 0.1 4", "2 finished 1 0.1 8", "3 finished 1 0.5 4",
      "4 finished 1 0.5 8" }, rows("trial", "status", "step", "lr", "width"))
    -- w goes from 0 towards 1 by 2 lr of what is left: two steps with lr = 0.5 arrive
    assert.matches("best: trial 3: val_loss = 0: lr=0.5 width=4\ns/trial_0003\n$", out)
    assert.matches("trial 1 of 4: lr=0.1 width=4: finished: val_loss = 0.4096 at step 1 ", out)
    local run = assert(lt.runs.read(root .. "/s/trial_0002"))
    assert.same({ "finished", 0.1, 8 }, { run.status, run.hparams.lr, run.hparams.width })
  end)

  it("continues with what is missing, and does nothing where nothing is", function()
    sweep("--lr", "1e-2..1", "--trials", "2")
    local before = rows("trial", "lr", "val_loss", "seconds")
    local _, out = sweep("--lr", "1e-2..1", "--trials", "3")
    local after = rows("trial", "lr", "val_loss", "seconds")
    assert.same(before, { after[1], after[2] })
    assert.equal(3, #after)
    assert.matches("^trial 3 of 3: [^\n]*\nbest: ", out)
    assert.matches("^best: ", select(2, sweep("--lr", "1e-2..1", "--trials", "3")))
  end)

  it("lets a trial fail alone, and tries it again when asked", function()
    local code, out = sweep("--width", "4,8,16", "--fail", "step")
    assert.equal(0, code)
    assert.same({ "finished ", "failed model.lua:6: width 8 is bad", "finished " },
      rows("status", "error"))
    assert.matches("\n1 of 3 trials failed\nbest: trial 1", out)
    out = select(2, sweep("--width", "4,8,16", "--fail", "step"))
    assert.matches("^1 of 3 trials failed\nbest", out)
    out = select(2, sweep("--width", "4,8,16", "--fail", "step", "--retry_failed"))
    assert.matches("^trial 2 of 3: width=8: failed: model.lua:6: width 8 is bad\n", out)
  end)

  it("knows of trials that failed before they trained", function()
    sweep("--width", "4,8", "--fail", "start")
    assert.same({ "finished ", "failed model.lua:15: width 8 is bad" }, rows("status", "error"))
    local _, again = sweep("--width", "4,8", "--fail", "start")
    assert.matches("^1 of 2 trials failed\n", again)
    local code, out = child.run({ "sweep", "model.lua", "--metric", "loss", "--dir", "t",
      "--width", "4,8", "--rehearse", "false" }, { dir = root })
    assert.equal(1, code)
    assert.matches("failed: loss was not logged, or never finite; there is: val_loss\n", out)
  end)

  it("halves: the best trials continue from their checkpoints", function()
    local code, out, err = sweep("--lr", "0.01,0.05,0.1,0.2", "--method", "halving", "--eta", "2",
      "--max_epochs", "4")
    assert.equal(0, code, err)
    assert.same({ "1 1", "2 1", "3 2", "4 4" }, rows("trial", "epochs"))
    assert.matches("best: trial 4", out)
    local loops = assert(lt.runs.read(root .. "/s/trial_0004")).info.loops
    assert.equal(3, #loops)
    assert.matches("s/trial_0004/checkpoints/", loops[3].resumed_from)
    -- 8 steps, each leaves 0.6 of the way
    local last = tonumber(rows("val_loss")[4])
    assert.is_true(math.abs(last - 0.6 ^ 16) < 1e-6)
  end)

  it("ends its trials when it is interrupted, and continues them", function()
    local code, out, err = child.shell([[
      env --default-signal=INT \
        ltrain sweep model.lua --metric val_loss --dir s --lr 0.1,0.2,0.3 --slow 0.4 --jobs 2 &
      while [ "$(grep -l running s/*/run.json 2>/dev/null | wc -l)" -lt 2 ]; do sleep 0.02; done
      kill -INT $!
      wait $! || echo "status $?"
      ! ps ax | grep -q "[m]odel.lua.*$(pwd)/s"
    ]], { dir = root })
    assert.equal(0, code, err)
    assert.matches("status 130\n", out)
    assert.matches("sweep: interrupted: the same command continues it\n", err)
    assert.same({ "1 stopped", "2 stopped", "3 waiting" }, rows("trial", "status"))
    assert.equal(0, (sweep("--lr", "0.1,0.2,0.3", "--slow", "0.4", "--jobs", "2")))
    assert.same({ "1 finished 1", "2 finished 1", "3 finished 1" },
      rows("trial", "status", "epochs"))
  end)

  it("is alone in its folder; when it is killed its trials end, another can continue", function()
    local code, out, err = child.shell([[
      ltrain sweep model.lua --metric val_loss --dir s --lr 0.1,0.2 --slow 0.4 --jobs 2 &
      while ! grep -q running s/trial_0002/run.json 2>/dev/null; do sleep 0.02; done
      ltrain sweep model.lua --metric val_loss --dir s --lr 0.1,0.2 --slow 0.4 || echo "status $?"
      kill -KILL $!
      while grep -q running s/trial_000?/run.json; do sleep 0.02; done
      ltrain sweep model.lua --metric val_loss --dir s --lr 0.1,0.2 --slow 0.4 --jobs 2
    ]], { dir = root })
    assert.equal(0, code, err)
    assert.matches("status 1\n", out)
    assert.matches("sweep: s: another sweep is running there\n", err)
    assert.same({ "1 finished", "2 finished" }, rows("trial", "status"))
  end)

  it("has one dashboard for all trials, through which one of them can be stopped", function()
    local why = servers.missing()
    if why then pending(why) return end
    local pid = servers.spawn(root, "sweep", { "sweep", "model.lua", "--metric", "val_loss",
      "--dir", "s", "--lr", "0.1,0.2", "--slow", "0.05", "--max_epochs", "1000", "--dashboard",
      "--dashboard_control" })
    local function said() return servers.read(root .. "/sweep.out") end
    local port, token = servers.until_true("the address", function()
      return said():match "http://127%.0%.0%.1:%d+/%?token=%x+"
    end):match "(%d+)/%?token=(%x+)"
    local server = setmetatable({ folder = root, at = child.folder(), pid = pid,
      port = tonumber(port), token = token }, servers)
    server:enter()
    local origin = ("Origin: http://127.0.0.1:%s\r\n"):format(port)
    for trial = 1, 2 do
      local id = server:id("trial_000" .. trial)
      servers.until_true("an epoch", function()
        local run = server:json("/api/run/" .. id)
        return run.control and run.last.val_loss
      end)
      assert.equal(202, (server:ask(("/api/run/%s/stop"):format(id), "POST", origin)))
      servers.until_true("the end of trial " .. trial, function()
        return said():find(("trial %d of 2: lr=0.%d: stopped: val_loss"):format(trial, trial), 1,
          true)
      end)
      if trial == 1 then assert.equal("interrupted", server:json("/api/run/" .. id).status) end
    end
    servers.until_true("the end of the sweep", function() return not servers.is_alive(pid) end)
    servers.until_true("the dashboard's end", function() return not server:ask "/api/about" end)
    local _, addresses = said():gsub("token=", "")
    assert.equal(1, addresses)
    assert.matches("`ltrain dashboard s` shows it again\nbest: trial ", said(), 1, true)
    assert.same({ "1 stopped", "2 stopped" }, rows("trial", "status"))
    server:stop()
  end)

  it("says what is wrong", function()
    for wrong, words in pairs {
      ["which script?"] = {}, ["--metric is needed: which metric is to be best?"] = { "model.lua" },
      ["absent.lua: there is no such script"] =
        { "absent.lua", "--metric", "a", "--lr", "1,2" },
      ["nothing to try: give some option several values, --lr 1e-4,1e-3 or --width 64..512"] =
        { "model.lua", "--metric", "a", "--lr", "1" },
      ["--lr: a range goes from a number to a larger one: got 2..1"] =
        { "model.lua", "--metric", "a", "--lr", "2..1" },
      ["--lr is given twice"] = { "model.lua", "--metric", "a", "--lr", "1,2", "--lr", "3" },
      ["a grid has no ranges: give values, or --method random"] =
        { "model.lua", "--metric", "a", "--lr", "1..2", "--method", "grid" },
      ["--method halving needs --max_epochs: the epochs of the trials that come to the end"] =
        { "model.lua", "--metric", "a", "--lr", "1,2", "--method", "halving" },
    } do
      local code, out, err = child.run({ "sweep", table.unpack(words) }, { dir = root })
      assert.same({ 2, "", "ltrain: sweep: " .. wrong .. "\n" }, { code, out, err })
    end
    local code, _, err = sweep("--lrr", "1,2")
    assert.equal(2, code)
    assert.matches("a trial was refused: run: unknown option %-%-lrr; did you mean %-%-lr%?", err)
    code, _, err = child.run({ "sweep", "model.lua", "--metric", "val_los", "--dir", "s", "--lr",
      "0.1,0.2" }, { dir = root })
    assert.equal(2, code)
    assert.equal("ltrain: sweep: --metric: 'val_los' was not logged; did you mean 'val_loss'?; "
      .. "there is: val_loss: --rehearse false skips this check\n", err)
    assert.same({ "lock" }, c.io.list_folder(root .. "/s")) -- no trial was begun
    code, _, err = sweep("--lr", "0.1,0.2")
    assert.equal(0, code, err)
    code, _, err = sweep("--lr", "0.1,0.3")
    assert.equal(2, code)
    assert.matches("s is the folder of another sweep %(.*%): name another by %-%-dir", err)
  end)
end)

describe("the space of a sweep", function()
  local function flags(values)
    local list = {}
    for name, text in pairs(values) do list[#list + 1] = { name = name, text = text } end
    return assert(search_space.read(list))
  end

  it("has lists, ranges and what is fixed", function()
    local of = flags { a = "1,2", b = "1..10", c = "x", d = "1,2;3", e = "../f" }
    assert.same({ "a", "b", "d" }, of.names)
    assert.same({ a = { "1", "2" }, d = { "1,2", "3" } }, of.values)
    assert.same({ b = { 1, 10, whole = true, log = true } }, of.ranges)
    assert.same({ c = "x", e = "../f" }, of.fixed)
  end)

  it("has all combinations in a grid", function()
    assert.same({ { a = "1", b = "x" }, { a = "1", b = "y" }, { a = "2", b = "x" },
      { a = "2", b = "y" } }, search_space.grid(flags { a = "1,2", b = "x,y" }))
  end)

  it("is drawn within its ranges, evenly, in logarithms where these are wide", function()
    local of = flags { whole = "3..5", wide = "1e-4..1e-1", even = "-1.0..1", word = "x,y" }
    local counts, small, negative = {}, 0, 0
    for k = 1, 600 do
      local values = search_space.draw(of, 0, k)
      counts[values.whole] = (counts[values.whole] or 0) + 1
      counts[values.word] = (counts[values.word] or 0) + 1
      local wide, even = tonumber(values.wide), tonumber(values.even)
      assert(wide >= 1e-4 and wide <= 1e-1 and even >= -1 and even <= 1)
      if wide < 10 ^ -2.5 then small = small + 1 end
      if even < 0 then negative = negative + 1 end
    end
    -- expected 200, 200, 200, 300, 300, and 300 each; five standard deviations
    for name, expected in pairs { ["3"] = 200, ["4"] = 200, ["5"] = 200, x = 300, y = 300 } do
      assert.is_true(math.abs(counts[name] - expected) < 62, name)
    end
    assert.is_true(math.abs(small - 300) < 62 and math.abs(negative - 300) < 62)
    assert.same(search_space.draw(of, 7, 3), search_space.draw(of, 7, 3))
    assert.is_false(search_space.draw(of, 7, 3).even == search_space.draw(of, 8, 3).even)
  end)
end)
