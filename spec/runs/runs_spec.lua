-- spec/runs/runs_spec.lua: the folder of a run: what a Trainer writes, and lt.runs reads, of runs
-- that ended well or otherwise.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local root
before_each(function() root = tiny.folder() end)
after_each(function() os.execute("rm -rf '" .. root .. "'") end)

local function Logged(step)
  local net = tiny.Line()
  function net:training_step(x)
    local loss = self:loss(x)
    self:log("loss", loss)
    if step then step(self) end
    return loss
  end
  return net
end

local function fit(net, options, fit_options)
  local o = { logger = true, default_root_dir = root, log_every_n_steps = 1 }
  for name, value in pairs(options or {}) do o[name] = value end
  local trainer = tiny.trainer(o)
  local ok, message = pcall(trainer.fit, trainer, net, tiny.same(3), nil, fit_options)
  return trainer, ok, message
end

local function read(trainer) return assert(lt.runs.read(trainer.log_dir)) end

describe("the folder of a run", function()
  it("says what was run, where and how it ended", function()
    lt.seed(5)
    local net = Logged()
    net:save_hyperparameters { width = 3 }
    local run = read((fit(net)))
    assert.same({ "finished", "fit", 1, 5, 1, 3, lt.version },
      { run.status, run.info.loop, run.info.ranks, run.info.seed, run.info.format, run.info.step,
        run.info.version })
    assert.equal(c.runtime.hostname(), run.info.process.host)
    assert.is_true(run.seconds >= 0 and run.seconds < 60)
    assert.same({ width = 3 }, run.hparams)
    assert.same({ "loss" }, run.names)
    assert.same({ 0, 1, 2 }, run.metrics.loss.steps)
    assert.same({ 0, 0, 0 }, run.metrics.loss.epochs)
    assert.is_true(run.metrics.loss.values[3] < run.metrics.loss.values[1])
  end)

  it("has the error of a run that failed", function()
    local trainer = fit(Logged(function(self)
      if self.global_step == 1 then error "it broke" end
    end))
    local run = read(trainer)
    assert.equal("failed", run.status)
    assert.matches("it broke$", run.error)
    assert.equal(1, #run.metrics.loss.values)
    assert.matches("it broke\n$", c.io.read_file(trainer.log_dir .. "/console.log"))
  end)

  it("is not made by a fit that does not begin", function()
    local net = Logged()
    net.configure_optimizers = function() error "no optimizer" end
    fit(net)
    assert.is_nil(c.io.kind(root .. "/ltrain_logs/version_0"))
  end)

  it("lists the loops of a Trainer, and those of runs that were resumed in it", function()
    local net = Logged()
    function net:test_step(x) self:log("test_loss", self:loss(x)) end
    local trainer = fit(net, { enable_checkpointing = true })
    trainer:test(net, tiny.same(1), { verbose = false })
    local again = fit(Logged(), { logger = lt.loggers.CSVLogger(root, { version = 0 }),
      max_epochs = 2, enable_checkpointing = true },
      { ckpt_path = root .. "/ltrain_logs/version_0/checkpoints/last.ckpt" })
    assert.equal(trainer.log_dir, again.log_dir)
    local loops = {}
    for i, loop in ipairs(read(again).info.loops) do
      loops[i] = { loop.loop, loop.status, loop.resumed_from ~= nil }
    end
    assert.same({ { "fit", "finished", false }, { "test", "finished", false },
      { "fit", "finished", true } }, loops)
    assert.same({ 0, 1, 2, 3, 4, 5 }, read(again).metrics.loss.steps)
  end)

  it("has metrics.csv whatever the loggers are", function()
    for _, loggers in ipairs { { "tensorboard" }, { "jsonlines" },
      { lt.loggers.JSONLinesLogger(root, { name = "own", prefix = "x-" }) },
      { "csv", "tensorboard", "jsonlines" } } do
      local run = read((fit(Logged(), { logger = loggers })))
      assert.same({ "loss" }, run.names)
      assert.equal(3, #run.metrics.loss.values)
    end
  end)

  it("is written by rank 0 alone", function()
    local folder = child.folder()
    child.write(folder .. "/model.lua", [[
      local lt = require "ltrain"
      local net = lt.nn.Linear(1, 1)
      function net:training_step(b)
        local loss = self(b[1]):square():mean()
        self:log("loss", loss, {sync_dist = true})
        self:log_text("who", "rank " .. self.global_rank)
        return loss
      end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      print "printed"
      return {model = net, data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(8, 1)),
        {batch_size = 2})}
    ]])
    local code, _, err = child.run({ "run", "model.lua", "--devices", "2", "--max_epochs", "1",
      "--log_every_n_steps", "1" }, { dir = folder })
    assert.equal(0, code, err)
    local run = assert(lt.runs.read(folder .. "/ltrain_logs/version_0"))
    assert.same({ "finished", 2, 2, 2 }, { run.status, run.info.ranks, #run.metrics.loss.values,
      #lt.runs.media(run) })
    assert.equal("rank 0", lt.runs.media(run)[1].text)
    assert.equal("model.lua", run.info.script)
    local text = c.io.read_file(folder .. "/model.lua")
    assert.equal(c.runtime.sha256 { text }, run.info.script_sha256)
    local said = c.io.read_file(run.path .. "/console.log")
    assert.matches("^printed\n", said)
    assert.matches("\nepoch 0 |####", said, 1, true) -- the line that the progress bar leaves
    -- The first row ends no span of time; the last is that of more than a moment.
    local rows = {}
    for line in c.io.read_file(run.path .. "/system.csv"):gmatch "[^\n]+" do
      rows[#rows + 1] = line
    end
    assert.matches("^0,0,[%d.]+,nan,%d+,nan,nan,nan,nan$", rows[2])
    assert.matches("^[01],2,[%d.]+,[%d.e+-]+,%d+,[%d.e+-]+,[%d.e+-]+,nan,[%d.e+-]+$", rows[3])
    child.remove(folder)
  end)

  it("shows that its process was killed", function()
    local folder = child.folder()
    child.write(folder .. "/model.lua", [[
      local lt = require "ltrain"
      local net = lt.nn.Linear(1, 1)
      function net:training_step(b)
        local loss = self(b[1]):square():mean()
        self:log("loss", loss)
        if self.global_step == 2 then os.execute("kill -9 $PPID") end
        return loss
      end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      lt.Trainer{logger = lt.loggers.CSVLogger(".", {flush_secs = 0}), log_every_n_steps = 1}
        :fit(net, lt.data.DataLoader(lt.data.TensorDataset(lt.ones(8, 1)), {batch_size = 1}))
    ]])
    assert.equal(137, (child.run({ "model.lua" }, { dir = folder })))
    local run = assert(lt.runs.read(folder .. "/ltrain_logs/version_0"))
    assert.same({ "killed", 2, "model.lua" }, { run.status, #run.metrics.loss.values,
      run.info.script })
    child.remove(folder)
  end)
end)

describe("lt.runs", function()
  local function folder_with(files)
    for name, text in pairs(files) do
      assert(c.io.make_folder(root .. "/" .. (name:match "(.*)/" or "")))
      assert(c.io.write_file(root .. "/" .. name, text))
    end
    return root
  end

  it("reads a file that is being written, without its last line", function()
    local run = assert(lt.runs.read(folder_with { ["metrics.csv"] =
      'epoch,step,"a,b",loss\n0,1,2.5,nan\n0,2,,inf\n0,3,7,1' }))
    assert.same({ "unknown", { "a,b", "loss" } }, { run.status, run.names })
    assert.same({ 2.5 }, run.metrics["a,b"].values)
    assert.same({ 1, 2 }, run.metrics.loss.steps)
    assert.is_true(run.metrics.loss.values[1] ~= run.metrics.loss.values[1])
    assert.is_nil(lt.runs.best(run, "a"))
  end)

  it("gives the last and the best of a metric, as its name has it", function()
    local run = assert(lt.runs.read(folder_with { ["metrics.csv"] =
      "epoch,step,val_loss,val_acc\n0,1,3,0.1\n0,2,1,0.9\n0,3,nan,\n0,4,2,0.5\n" }))
    assert.same({ 2, 0.5 }, { lt.runs.last(run, "val_loss"), lt.runs.last(run, "val_acc") })
    assert.same({ 1, 2 }, { lt.runs.best(run, "val_loss") })
    assert.same({ 0.9, 2 }, { lt.runs.best(run, "val_acc") })
    assert.same({ 3, 1 }, { lt.runs.best(run, "val_loss", "max") })
    assert.is_nil(lt.runs.best(run, "absent"))
    assert.matches("runs.best: mode must be 'min' or 'max': got 'best'",
      tiny.error_of(lt.runs.best, run, "val_loss", "best"))
  end)

  it("says what is wrong with a folder", function()
    assert.same({ nil, root .. ": there is no such folder" }, { lt.runs.read(root) })
    assert.same({ nil, root .. ": there is no such folder" }, { lt.runs.find(root) })
    folder_with { ["a/notes.txt"] = "x" }
    assert.same({ nil, root .. "/a: is not the folder of a run: it has no run.json and no "
      .. "metrics.csv" }, { lt.runs.read(root .. "/a") })
    assert.same({ nil, root .. ": there is no run in it" }, { lt.runs.find(root) })
    folder_with { ["b/run.json"] = '{"format": 2}', ["c/run.json"] = "{", ["d/run.json"] = "{}",
      ["d/metrics.csv"] = "a,b\n1,2\n", ["e/run.json"] = '{"a": 1}' }
    local function why(name) return select(2, lt.runs.read(root .. "/" .. name)) end
    assert.equal(root .. "/b/run.json: has format 2, this version of ltrain reads up to 1", why "b")
    assert.matches("c/run.json: is not an object of JSON: ", why "c")
    assert.equal(root .. "/d/metrics.csv: its columns must begin with epoch,step", why "d")
    assert.equal(root .. "/e/run.json: has no format", why "e")
  end)

  it("finds the runs below a folder by their numbers", function()
    folder_with { ["x/version_10/metrics.csv"] = "", ["x/version_9/run.json"] = "{}",
      ["x/version_9/checkpoints/run.json"] = "{}", ["run_2/metrics.csv"] = "" }
    assert.same({ root .. "/run_2", root .. "/x/version_9", root .. "/x/version_10" },
      lt.runs.find(root))
    assert.same({ root .. "/run_2" }, lt.runs.find(root .. "/run_2/"))
    assert.same({}, assert(lt.runs.read(root .. "/run_2")).names)
  end)
end)

describe("a run that is resumed in its folder", function()
  for _, kind in ipairs { "csv", "jsonlines", "tensorboard" } do
    it("has the rows of before, with hyper-parameters and texts: " .. kind, function()
      local function net()
        local one = Logged()
        one:save_hyperparameters { width = 3 }
        function one:on_fit_start() self:log_text("began", "yes") end
        return one
      end
      local function logger()
        local own = kind ~= "csv" and (kind == "jsonlines" and lt.loggers.JSONLinesLogger
          or lt.loggers.TensorBoardLogger)(root, { version = 0 })
        return { lt.loggers.CSVLogger(root, { version = 0 }), own or nil }
      end
      fit(net(), { logger = logger(), enable_checkpointing = true, max_epochs = 1 })
      local path = root .. "/ltrain_logs/version_0"
      assert(os.execute(("cp %s/checkpoints/last.ckpt %s/one.ckpt"):format(path, path)))
      for _ = 1, 2 do
        local trainer, ok, message = fit(net(), { logger = logger(), max_epochs = 2 },
          { ckpt_path = path .. "/one.ckpt" })
        assert.is_true(ok, message)
        local run = read(trainer)
        assert.same({ 0, 1, 2, 3, 4, 5 }, run.metrics.loss.steps)
        assert.same({ width = 3 }, run.hparams)
        assert.equal(1, #lt.runs.media(run))
      end
    end)
  end
end)

describe("media", function()
  for _, hook in ipairs { "on_train_batch_start", "on_train_batch_end", "on_train_epoch_end",
    "on_validation_epoch_end" } do
    it("have the step of the metrics that are logged in " .. hook, function()
      local net = Logged()
      function net:validation_step() end
      net[hook] = function(self)
        local by_step = hook:find "batch" ~= nil
        self:log("seen", 1, { on_step = by_step, on_epoch = not by_step })
        self:log_text("seen", "here")
      end
      local run = read((fit(net, { max_epochs = 1 }, { val = { lt.ones(1, 1) } })))
      local steps, last = {}, nil
      for _, entry in ipairs(lt.runs.media(run)) do
        if entry.step ~= last then steps[#steps + 1] = entry.step end
        last = entry.step
      end
      assert.same(run.metrics.seen.steps, steps)
    end)
  end

  it("are files and entries of an index, in the order in which they were logged", function()
    local net = Logged(function(self)
      if self.global_step ~= 1 then return end
      self:log_image("val/a b", lt.full({ 3, 2, 4 }, 0.5))
      self:log_image("many", { lt.zeros(2, 2), lt.ones(1, 3, 2, { dtype = "u8" }) })
      self:log_image("many", lt.ones(2, 4, 2, 2, { dtype = "bool" }), { step = 7 })
      self:log_text("note", "a\nb")
      self:log_histogram("h", lt.tensor { 0, 1, 1, 4, 0 / 0 }, { bins = 2 })
      self:log_histogram("same", lt.ones(3), { bins = 2 })
      self:log_histogram("none", lt.full({ 3 }, 1 / 0))
    end)
    local run = read((fit(net)))
    assert.same({
      { kind = "image", name = "val/a b", step = 1, files = { "val/a_b/000001.png" } },
      { kind = "image", name = "many", step = 1,
        files = { "many/000001.png", "many/000001_2.png" } },
      { kind = "image", name = "many", step = 7,
        files = { "many/000007.png", "many/000007_2.png" } },
      { kind = "text", name = "note", step = 1, text = "a\nb" },
      { kind = "histogram", name = "h", step = 1, counts = { 3, 1 }, edges = { 0.0, 2.0, 4.0 },
        num = 4, min = 0.0, max = 4.0, sum = 6.0, sum_squares = 18.0 },
      { kind = "histogram", name = "same", step = 1, counts = { 0, 3 }, edges = { 0.5, 1.0, 1.5 },
        num = 3, min = 1.0, max = 1.0, sum = 3.0, sum_squares = 3.0 },
    }, lt.runs.media(run))
    -- 1 pixel of 3 channels is 128; a file of stored pixels ends with these, two checksums and IEND
    local png = c.io.read_file(run.path .. "/media/val/a_b/000001.png")
    assert.equal("\137PNG\r\n\26\n", png:sub(1, 8))
    assert.equal(2 * (1 + 4 * 3), #png:match("\0" .. ("\128"):rep(12) .. "\0" .. ("\128"):rep(12)))
  end)

  it("are those of the folder alone, whatever its index names", function()
    local image = '{"kind":"image","name":"a","step":1,"files":[%s]}\n'
    local lines = {}
    for i, files in ipairs { '"../run.json"', '"/etc/passwd"', '"a/../../run.json"', '"link.png"',
      '5', 'null,"a.png"', '"none.png","a.png"' } do
      lines[i] = image:format(files)
    end
    lines[#lines + 1] = '{"kind":"text","name":"t","step":"x","text":"t"}\n{"kind":"other"}\n'
    local folder = root .. "/of_others"
    assert(c.io.make_folder(folder .. "/media"))
    assert(c.io.write_file(folder .. "/run.json", '{"format":1}'))
    assert(c.io.write_file(folder .. "/media/index.jsonl", table.concat(lines)))
    assert(c.io.write_file(folder .. "/media/a.png", "x"))
    assert(os.execute(("ln -s /etc/passwd '%s/media/link.png'"):format(folder)))
    assert.same({ { kind = "image", name = "a", step = 1, files = { "a.png" } } },
      lt.runs.media(assert(lt.runs.read(folder))))
  end)

  it("have U+FFFD for bytes of a text that are not UTF-8", function()
    local given = { "\xd9\xa5 \xd9", "\xe6\xbc", "", "a\0\xffb", "\u{6F22}" }
    local run = read((fit(Logged(function(self)
      for _, text in ipairs(self.global_step == 0 and given or {}) do self:log_text("t", text) end
    end), { logger = { "csv", "tensorboard" } })))
    local texts = {}
    for i, entry in ipairs(lt.runs.media(run)) do texts[i] = entry.text end
    assert.same({ "\u{665} \u{FFFD}", "\u{FFFD}\u{FFFD}", "", "a\0\u{FFFD}b", "\u{6F22}" }, texts)
  end)

  it("are those of the run that was resumed, and of what it logged since", function()
    local function net()
      return Logged(function(self) self:log_text("step", tostring(self.global_step)) end)
    end
    fit(net(), { enable_checkpointing = true, max_epochs = 1 })
    local path = root .. "/ltrain_logs/version_0"
    os.execute(("cp %s/checkpoints/last.ckpt %s/one.ckpt"):format(path, path))
    local again = { logger = lt.loggers.CSVLogger(root, { version = 0 }), max_epochs = 2 }
    fit(net(), again, { ckpt_path = path .. "/one.ckpt" })
    local trainer = fit(net(), again, { ckpt_path = path .. "/one.ckpt" })
    local texts = {}
    for i, entry in ipairs(lt.runs.media(read(trainer))) do texts[i] = entry.text end
    assert.equal("0 1 2 3 4 5", table.concat(texts, " "))
  end)

  it("are refused where they are none", function()
    local function message(fn)
      local _, _, text = fit(Logged(fn))
      return text
    end
    assert.matches("log_image: 'a': floats must be from 0 to 1: got %-1.0 to 2.0",
      message(function(self) self:log_image("a", lt.tensor { { -1.0, 2.0 } }) end))
    assert.matches("log_image: 'a' must be a tensor .*: got a tensor %[5, 2, 2%]",
      message(function(self) self:log_image("a", lt.zeros(5, 2, 2)) end))
    assert.matches("log_image: 'a' must be a tensor .*: got a table",
      message(function(self) self:log_image("a", {}) end))
    assert.matches("log_text: text must be a string: got 1",
      message(function(self) self:log_text("a", 1) end))
    assert.matches("log_histogram: 'a' must be a tensor: got 1",
      message(function(self) self:log_histogram("a", 1) end))
    assert.matches("log_image: name must be a string: got nil",
      message(function(self) self:log_image(nil, lt.zeros(2, 2)) end))
  end)

  it("keep to their folder", function()
    local run = read((fit(Logged(function(self)
      self:log_image("../../a//../b/", lt.zeros(1, 2, 2))
    end))))
    for _, entry in ipairs(lt.runs.media(run)) do
      assert.is_nil(entry.files[1]:find("..", 1, true))
      assert.equal("file", c.io.kind(run.path .. "/media/" .. entry.files[1]))
    end
  end)
end)
