-- spec/loggers/csv_spec.lua: metrics.csv: columns, quoting, exact numbers, versions, resuming.
local c = require "ltrain.c"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local root
before_each(function() root = tiny.folder() end)
after_each(function() os.execute("rm -rf '" .. root .. "'") end)

local function text_of(logger)
  return c.io.read_file(logger:path())
end

local function logger_with(rows, options)
  local logger = lt.loggers.CSVLogger(root, options)
  logger:begin()
  for i, row in ipairs(rows) do logger:log_metrics(row, i - 1) end
  logger:save()
  return logger
end

describe("CSVLogger", function()
  it("writes epoch, step, then the metrics by name", function()
    local logger = logger_with { { loss = 0.5, acc = 1, epoch = 0 }, { loss = 0.25, epoch = 1 } }
    assert.equal("epoch,step,acc,loss\n0,0,1,0.5\n1,1,,0.25\n", text_of(logger))
    assert.equal(root .. "/ltrain_logs/version_0/metrics.csv", logger:path())
  end)

  it("adds columns that appear late", function()
    local logger = logger_with({ { a = 1 }, { a = 2, b = 3 }, { ["c"] = 4 } },
      { flush_logs_every_n_steps = 1 })
    assert.equal("epoch,step,a,b,c\n,0,1,,\n,1,2,3,\n,2,,,4\n", text_of(logger))
  end)

  it("quotes names as RFC 4180 does, and finds them again", function()
    local logger = logger_with { { ['a,"b"'] = 1, plain = 2 } }
    assert.equal('epoch,step,"a,""b""",plain\n,0,1,2\n', text_of(logger))
    local again = lt.loggers.CSVLogger(root, { version = 0 })
    again:begin()
    again:resume(1, { rows = 1 })
    again:log_metrics({ plain = 3, ['a,"b"'] = 4 }, 1)
    again:save()
    assert.equal('epoch,step,"a,""b""",plain\n,0,1,2\n,1,4,3\n', text_of(again))
  end)

  it("writes numbers that read back the same, finite or not", function()
    local logger = logger_with { { a = 0.1 + 0.2, b = 1 / 0, c = -1 / 0, d = 0 / 0, e = 1e-310 } }
    local line = text_of(logger):match "\n(.*)\n$"
    local fields = {}
    for field in line:gmatch "[^,]+" do fields[#fields + 1] = field end
    assert.equal(0.1 + 0.2, tonumber(fields[2]))
    assert.same({ "inf", "-inf", "nan" }, { fields[3], fields[4], fields[5] })
    assert.equal(1e-310, tonumber(fields[6]))
  end)

  it("gives each run a version, and takes a name and a prefix", function()
    assert.equal(0, logger_with({ { a = 1 } }).version)
    assert.equal(1, logger_with({ { a = 1 } }).version)
    local logger = logger_with({ { a = 1, epoch = 0 } }, { name = "digits", version = "try",
      prefix = "x-" })
    assert.equal(root .. "/digits/try/metrics.csv", logger:path())
    assert.matches("^epoch,step,x%-a\n", text_of(logger))
  end)

  it("forgets on resume what came after the checkpoint", function()
    local logger = logger_with { { a = 1 }, { a = 2 } }
    local saved = logger:state_dict()
    logger:log_metrics({ a = 3 }, 2)
    logger:save()
    local again = lt.loggers.CSVLogger(root, { version = 0 })
    again:begin()
    again:resume(2, saved)
    again:log_metrics({ a = 4 }, 2)
    again:save()
    assert.equal("epoch,step,a\n,0,1\n,1,2\n,2,4\n", text_of(again))
  end)

  it("reports when the disk is full", function()
    local append = c.io.append_file
    c.io.append_file = function() return nil, "no space left on device" end
    local message = tiny.error_of(logger_with, { { a = 1 } })
    c.io.append_file = append
    assert.matches("logger: no space left on device", message)
  end)

  it("writes hyper-parameters beside it", function()
    local net = tiny.Line()
    net:save_hyperparameters { width = 3, name = "x" }
    tiny.trainer({ logger = true, default_root_dir = root }):fit(net, tiny.same(1))
    local text = c.io.read_file(root .. "/ltrain_logs/version_0/hparams.json")
    assert.same({ width = 3, name = "x" }, c.io.json_decode(text, { plain = true }))
  end)

  it("gets the rows of a fit at every log_every_n_steps-th step", function()
    local net = tiny.Line()
    function net:training_step(x)
      local loss = self:loss(x)
      self:log("loss", 1.5, { on_epoch = true })
      return loss
    end
    function net:validation_step() self:log("val", 2.5) end
    tiny.trainer({ logger = true, default_root_dir = root, log_every_n_steps = 2,
      num_sanity_val_steps = 0 }):fit(net, tiny.same(4), tiny.same(1))
    assert.equal("epoch,step,loss_step,val,loss_epoch\n"
      .. "0,1,1.5,,\n0,3,1.5,,\n0,3,,2.5,\n0,3,,,1.5\n",
      c.io.read_file(root .. "/ltrain_logs/version_0/metrics.csv"))
  end)
end)

describe("JSONLinesLogger", function()
  it("writes one object a row, and cuts on resume", function()
    local logger = lt.loggers.JSONLinesLogger { save_dir = root, flush_logs_every_n_steps = 1 }
    logger:begin()
    logger:log_metrics({ loss = 0.5, epoch = 0 }, 0)
    logger:log_metrics({ loss = 0 / 0 }, 1)
    assert.equal('{"epoch":0,"loss":0.5,"step":0}\n{"loss":"nan","step":1}\n', text_of(logger))
    local again = lt.loggers.JSONLinesLogger(root, { version = 0 })
    again:begin()
    again:resume(1, { rows = 1 })
    assert.equal('{"epoch":0,"loss":0.5,"step":0}\n', text_of(again))
  end)
end)
