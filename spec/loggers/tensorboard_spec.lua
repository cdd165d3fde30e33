-- spec/loggers/tensorboard_spec.lua: event files, byte for byte and as a run writes them.
local c = require "ltrain.c"
local lt = require "ltrain"
local messages = require "spec.loggers.messages"
local tiny = require "spec.trainer.tiny"

local fields <const>, find <const>, all <const> = messages.fields, messages.find, messages.all

local root
before_each(function() root = tiny.folder() end)
after_each(function() os.execute("rm -rf '" .. root .. "'") end)

local function bytes(hex)
  return (hex:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end)
    :gsub(" ", ""))
end

-- What a tensor and its metadata say: the plugin's name and content, the shape, the elements.
local function tensor_of(tensor, metadata)
  local plugin = fields(find(metadata, 1))
  local shape = {}
  for i, dim in ipairs(all(fields(find(tensor, 2)), 2)) do shape[i] = find(fields(dim), 1) end
  return { plugin = find(plugin, 1), content = find(plugin, 2), dtype = find(tensor, 1),
    shape = shape, texts = all(tensor, 8), bytes = find(tensor, 4) }
end

-- The events of the one file of a folder: { step, name = value }; of the first two what they say.
local function events_of(folder)
  local names = {}
  for _, name in ipairs(c.io.list_folder(folder)) do
    if name:find "tfevents" then names[#names + 1] = name end
  end
  assert.equal(1, #names)
  local text, at, list = c.io.read_file(folder .. "/" .. names[1]), 1, {}
  while at <= #text do
    local size = string.unpack("<I8", text, at)
    local data = text:sub(at + 12, at + 11 + size)
    assert.equal(c.io.event_record(data), text:sub(at, at + 15 + size))
    local event, row = fields(data), {}
    assert.is_true(math.abs(find(event, 1) - os.time()) < 1000)
    row.step = find(event, 2)
    row.version, row.session = find(event, 3), find(event, 7)
    for _, value in ipairs(fields(find(event, 5) or "")) do
      local parts = fields(value[2])
      local tensor = find(parts, 8)
      local other = find(parts, 4) or find(parts, 5) -- an image, a histogram
      row[find(parts, 1)] = tensor and tensor_of(fields(tensor), fields(find(parts, 9)))
        or other and fields(other) or find(parts, 2)
    end
    list[#list + 1] = row
    at = at + 16 + size
  end
  return list, names[1]
end

local HEAD <const> = { { step = 0, version = "brain.Event:2" }, { step = 0, session = "\8\1" } }

describe("a record of an event file", function()
  it("is as TensorBoard's own", function()
    local version = bytes "09 00 00 80 38 99 d6 d7 41 1a 0d" .. "brain.Event:2"
    local head, tail = string.pack("<I8I4", 24, 0x224b7fa3), string.pack("<I4", 0xab364b12)
    assert.equal(head .. version .. tail, c.io.event_record(version))
    local scalar = bytes "09 c4 05 b7 3d 99 d6 d7 41 10 4d 2a 25 0a 23 0a 08" .. "accuracy"
      .. bytes "42 0a 08 01 12 00 22 04 a4 70 7d 3f 4a 0b 0a 09 0a 07" .. "scalars"
    assert.equal(string.pack("<I8I4", 50, 0xec561924) .. scalar .. string.pack("<I4", 0x33645ba5),
      c.io.event_record(scalar))
    assert.equal(0x5794d08a, string.unpack("<I4", c.io.event_record "\x1a\x11CRC test, one two",
      13 + 19))
  end)
end)

describe("TensorBoardLogger", function()
  it("writes rows of scalars", function()
    local logger = lt.loggers.TensorBoardLogger(root, { name = "digits", prefix = "x-" })
    logger:begin "fit"
    logger:log_metrics({ loss = 0.5, acc = 1, epoch = 0 }, 0)
    logger:log_metrics({ loss = 0 / 0 }, 300)
    logger:log_metrics({ loss = math.huge }, 1 << 40)
    logger:save()
    local list, name = events_of(root .. "/digits/version_0")
    assert.matches("^events%.out%.tfevents%.%d+%." .. c.runtime.hostname():gsub("%p", "%%%0"), name)
    assert.same(HEAD, { list[1], list[2] })
    assert.same({ step = 0, ["x-loss"] = 0.5, ["x-acc"] = 1, epoch = 0 }, list[3])
    assert.equal(300, list[4].step)
    assert.is_true(list[4]["x-loss"] ~= list[4]["x-loss"])
    assert.same({ step = 1 << 40, ["x-loss"] = math.huge }, list[5])
  end)

  it("refuses what is not a number, with its name", function()
    local logger = lt.loggers.TensorBoardLogger(root)
    assert.matches("logger: 'a' must be a number: got 'x'",
      tiny.error_of(logger.log_metrics, logger, { a = "x" }, 0), 1, true)
  end)

  it("resumes from a checkpoint: later rows and a torn one are cut, in a new file", function()
    local function rows(logger, from, to)
      for i = from, to do logger:log_metrics({ a = i }, i) end
      logger:save()
    end
    local logger = lt.loggers.TensorBoardLogger(root, { version = 3 })
    logger:begin "fit"
    rows(logger, 1, 2)
    local state = logger:state_dict()
    assert.equal(2, state.rows)
    rows(logger, 3, 5)
    local folder, before = logger.log_dir, logger.file
    c.io.append_file(logger:path(), ("\40" .. ("\0"):rep(9)))
    local again = lt.loggers.TensorBoardLogger(root, { version = 3 })
    again:begin "fit"
    again:resume(2, state)
    rows(again, 3, 3)
    local list, name = events_of(folder)
    assert.not_equal(before, name)
    assert.same({ HEAD[1], HEAD[2], { step = 1, a = 1 }, { step = 2, a = 2 }, { step = 3, a = 3 } },
      list)
    assert.same({ rows = 3, file = name }, again:state_dict())
  end)

  it("replaces what another run left in its folder", function()
    for i = 1, 2 do
      local logger = lt.loggers.TensorBoardLogger(root, { version = 0 })
      logger:begin "fit"
      logger:log_metrics({ a = i }, i)
      logger:save()
    end
    local list = events_of(lt.loggers.TensorBoardLogger(root).root_dir .. "/version_0")
    assert.same({ step = 2, a = 2 }, list[3])
    assert.equal(3, #list)
  end)

  it("leaves alone what another logger of the run writes into its folder", function()
    local Line = tiny.Line:extend "Line"
    function Line:training_step(batch)
      local loss = tiny.Line.training_step(self, batch)
      self:log("l", loss)
      return loss
    end
    local loggers = { lt.loggers.TensorBoardLogger(root),
      lt.loggers.TensorBoardLogger(root, { prefix = "b/" }) }
    tiny.trainer { max_epochs = 1, logger = loggers, log_every_n_steps = 1 }
      :fit(Line(), tiny.same(3))
    assert.equal(loggers[1].log_dir, loggers[2].log_dir)
    for _, logger in ipairs(loggers) do assert.truthy(c.io.kind(logger:path()), logger:path()) end
  end)

  it("logs a fit, with its hyper-parameters beside", function()
    local Line = tiny.Line:extend "Line"
    function Line:training_step(x)
      local loss = self:loss(x)
      self:log("loss", loss)
      return loss
    end
    local net = Line()
    net:save_hyperparameters { lr = 0.5 }
    local trainer = tiny.trainer { logger = "tensorboard", default_root_dir = root,
      log_every_n_steps = 1 }
    trainer:fit(net, tiny.same(3))
    local list = events_of(trainer.logger.log_dir)
    assert.equal(7, #list)
    local start = list[3]["_hparams_/session_start_info"]
    assert.same({ "hparams", 1, {} }, { start.plugin, start.dtype, start.shape })
    local session = fields(find(fields(start.content), 3))
    local entry = fields(find(session, 1))
    assert.same({ "lr", 0.5, trainer.logger.log_dir },
      { find(entry, 1), find(fields(find(entry, 2)), 2), find(session, 4) })
    assert.is_true(list[4].loss > list[5].loss and list[5].loss > list[6].loss)
    local ended = fields(find(fields(list[7]["_hparams_/session_end_info"].content), 4))
    assert.equal(1, find(ended, 1))
    assert.is_true(math.abs(find(ended, 2) - os.time()) < 1000)
    assert.equal("file", c.io.kind(trainer.logger.log_dir .. "/hparams.json"))
  end)

  it("says of a fit that failed that its session did", function()
    local net = tiny.Line()
    net:save_hyperparameters { a = true, b = { c = "x" }, d = { 1, 2 } }
    function net:training_step() error "no" end
    local trainer = tiny.trainer { logger = "tensorboard", default_root_dir = root }
    tiny.error_of(trainer.fit, trainer, net, tiny.same(1))
    local list = events_of(trainer.logger.log_dir)
    local session = fields(find(fields(list[3]["_hparams_/session_start_info"].content), 3))
    local names = {}
    for i, text in ipairs(all(session, 1)) do
      local entry = fields(text)
      local value = fields(find(entry, 2))
      names[i] = { find(entry, 1), value[1][1], value[1][2] }
    end
    assert.same({ { "a", 4, 1 }, { "b/c", 3, "x" }, { "d", 3, "[1,2]" } }, names)
    assert.equal(2, find(fields(find(fields(list[4]["_hparams_/session_end_info"].content), 4)), 1))
  end)

  it("logs images, texts and histograms, which resume as rows do", function()
    local logger = lt.loggers.TensorBoardLogger(root, { prefix = "x-", version = 0 })
    logger:begin "fit"
    local black, grey = lt.zeros(1, 2, 3, { dtype = "u8" }), lt.ones(1, 2, 3, { dtype = "u8" })
    logger:log_image("a", { black, grey }, 4)
    logger:log_text("b", "text", 5)
    local state = logger:state_dict()
    logger:log_histogram("c", { edges = { 0, 1, 3 }, counts = { 2, 5 }, num = 7, min = 0.5, max = 2,
      sum = 9, sum_squares = 20 }, 6)
    logger:save()
    local list = events_of(logger.log_dir)
    local text = list[4]["x-b"]
    for k, image in ipairs { list[3]["x-a/0"], list[3]["x-a/1"] } do -- height, width, channels, PNG
      assert.same({ { 1, 2 }, { 2, 3 }, { 3, 1 } }, { image[1], image[2], image[3] })
      assert.equal("\137PNG\r\n\26\n", image[4][2]:sub(1, 8))
      assert.matches(k == 1 and "\0\0\0\0\0\0\0\0" or "\0\1\1\1\0\1\1\1", image[4][2])
    end
    assert.same({ "text", 7, { 1 }, { "text" } },
      { text.plugin, text.dtype, text.shape, text.texts })
    assert.same({ { 1, 0.5 }, { 2, 2 }, { 3, 7 }, { 4, 9 }, { 5, 20 },
      { 6, ("<ddd"):pack(0, 1, 3) }, { 7, ("<ddd"):pack(0, 2, 5) } }, list[5]["x-c"])
    logger:log_image("one", { black }, 7)
    assert.equal(1, events_of(logger.log_dir)[6]["x-one"][3][2])
    local again = lt.loggers.TensorBoardLogger(root, { version = 0 })
    again:begin "fit"
    again:resume(6, state)
    again:log_text("d", "new", 7)
    list = events_of(logger.log_dir)
    assert.same({ "text", "new", 5 }, { list[4]["x-b"].texts[1], list[5].d.texts[1], #list })
  end)
end)
