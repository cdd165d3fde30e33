-- spec/loggers/wandb_spec.lua: files of W&B, read as its own reader does: LevelDB's blocks, then
-- messages. spec/loggers/sync_wandb.py has `wandb sync` read them.
local c = require "ltrain.c"
local lt = require "ltrain"
local messages = require "spec.loggers.messages"
local tiny = require "spec.trainer.tiny"

local find <const>, all <const> = messages.find, messages.all
local KINDS <const> = { [2] = "history", [3] = "summary", [5] = "config", [6] = "files",
  [12] = "metric", [17] = "run", [18] = "exit", [21] = "header" }

local root
before_each(function() root = tiny.folder() end)
after_each(function() os.execute("rm -rf '" .. root .. "'") end)

-- CRC-32 of IEEE 802.3.
local TABLE <const> = {}
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do crc = crc >> 1 ~ (crc & 1) * 0xedb88320 end
  TABLE[byte] = crc
end

local function crc32(text)
  local crc = 0xffffffff
  for i = 1, #text do crc = crc >> 8 ~ TABLE[(crc ~ text:byte(i)) & 255] end
  return crc ~ 0xffffffff
end

-- The messages of a log; and how many pieces the longest has.
local function records_of(path)
  local text = c.io.read_file(path)
  assert.equal(":W&B\xe1\xbe\0", text:sub(1, 7))
  local list, at, open, pieces, most = {}, 7, "", 0, 0
  while at < #text do
    local left = 32768 - at % 32768
    if left < 7 then
      assert.equal(("\0"):rep(left), text:sub(at + 1, at + left))
      at = at + left
    else
      local crc, size, kind = string.unpack("<I4I2I1", text, at + 1)
      local piece = text:sub(at + 8, at + 7 + size)
      assert.equal(crc32(string.char(kind) .. piece), crc)
      assert.is_true(size + 7 <= left)
      assert.equal(kind == 1 or kind == 2, pieces == 0)
      at, open, pieces = at + 7 + size, open .. piece, pieces + 1
      if kind == 1 or kind == 4 then
        most = math.max(most, pieces)
        list[#list + 1], open, pieces = open, "", 0
      end
    end
  end
  assert.same({ #text, "" }, { at, open })
  return list, most
end

-- Names and values of the items of a message, whose names are in the field `key`.
local function items_of(message, key)
  local values = {}
  for _, item in ipairs(all(message, 1)) do
    local parts = messages.fields(item)
    values[find(parts, key)] = find(parts, 16)
  end
  return values
end

-- The records as {kind =, values = of items, or fields = the message}, their numbers checked.
local function read(path)
  local list, most = records_of(path)
  for i, text in ipairs(list) do
    local record = messages.fields(text)
    assert.equal(i, find(record, 1))
    local field, value = table.unpack(record[2])
    local message = messages.fields(value)
    local key = field == 5 and 1 or (field == 2 or field == 3) and 2
    list[i] = { kind = KINDS[field], values = key and items_of(message, key), fields = message }
  end
  return list, most
end

local function of_kind(list, kind)
  local found = {}
  for _, record in ipairs(list) do
    if record.kind == kind then found[#found + 1] = record end
  end
  return found
end

local function path_of(logger)
  return ("%s/wandb/offline-run-%s/run-%s.wandb"):format(root, logger.id, logger.id)
end

describe("WandbLogger", function()
  it("writes a run: its config, rows and their summaries, and the end", function()
    local logger = lt.loggers.WandbLogger({ save_dir = root, project = "digits", group = "g",
      prefix = "x/", tags = { "a", "b" }, job_type = "train", notes = "n" })
    logger:begin "fit"
    logger:log_hyperparams { lr = 0.1, act = "relu", opt = { betas = { 0.9, 0.99 } },
      api_key = "k" }
    logger:log_metrics({ loss = 0.5, epoch = 0 }, 7)
    logger:log_metrics({ loss = 0 / 0, top = -math.huge }, 7)
    logger:finalize "failed"
    local list = read(path_of(logger))
    local kinds = {}
    for i, record in ipairs(list) do kinds[i] = record.kind end
    assert.equal("header run metric metric config history summary history summary exit",
      table.concat(kinds, " "))
    local run = list[2].fields
    assert.same({ logger.id, "digits", "g", "train", "ltrain_logs/version_0", "n" },
      { find(run, 1), find(run, 3), find(run, 6), find(run, 7), find(run, 8), find(run, 9) })
    assert.same({ "a", "b" }, all(run, 10))
    assert.same({ lr = "0.1", act = '"relu"', opt = '{"betas":[0.9,0.99]}',
      api_key = '"[redacted]"' }, list[5].values)
    local first, second = list[6].values, list[8].values
    assert.same({ "0.5", "0", "7", "0" },
      { first["x/loss"], first.epoch, first["trainer/global_step"], first._step })
    assert.same({ "NaN", "-Infinity", "7", "1" },
      { second["x/loss"], second["x/top"], second["trainer/global_step"], second._step })
    assert.same(first, list[7].values)
    assert.equal(1, find(list[10].fields, 1))
    assert.matches("^%x+$", logger.id)
    assert.truthy(c.io.kind(root .. "/wandb/offline-run-" .. logger.id .. "/files"))
  end)

  it("writes images, histograms and texts, as files and values of W&B's types", function()
    local logger = lt.loggers.WandbLogger({ save_dir = root })
    logger:begin "fit"
    local image <const> = lt.zeros({ 3, 2, 4 }, { dtype = "u8" })
    logger:log_image("val/x", { image }, 1)
    logger:log_image("two", { image, image }, 2)
    logger:log_histogram("w", { edges = { 0.0, 1.0, 2.0 }, counts = { 3, 4 }, num = 7 }, 3)
    logger:log_text("said", "hello", 4)
    logger:finalize "success"
    local list = read(path_of(logger))
    local files, rows = {}, of_kind(list, "history")
    for _, record in ipairs(of_kind(list, "files")) do
      local path = find(messages.fields(find(record.fields, 1)), 1)
      files[#files + 1] = path
      assert.equal("file", c.io.kind(logger:path():match "^(.*)/" .. "/files/" .. path))
    end
    assert.same({ "media/images/val/x_0_0.png", "media/images/two_1_0.png",
      "media/images/two_1_1.png", "media/table/said_3.table.json" }, files)
    local function value(row, name) return c.io.json_decode(rows[row].values[name]) end
    local one <const> = value(1, "val/x")
    assert.same({ "image-file", "png", files[1], 4, 2 },
      { one._type, one.format, one.path, one.width, one.height })
    local text = c.io.read_file(logger:path():match "^(.*)/" .. "/files/" .. files[1])
    assert.same({ #text, c.runtime.sha256 { text } }, { one.size, one.sha256 })
    assert.same({ "images/separated", 2, { files[2], files[3] } },
      { value(2, "two")._type, value(2, "two").count, value(2, "two").filenames })
    assert.same({ _type = "histogram", values = { 3, 4 }, bins = { 0, 1, 2 } }, value(3, "w"))
    assert.same({ "table-file", files[4], 1, 1 }, { value(4, "said")._type,
      value(4, "said").path, value(4, "said").ncols, value(4, "said").nrows })
    assert.equal("4", rows[4].values["trainer/global_step"])
  end)

  it("splits records at the ends of blocks", function()
    local logger = lt.loggers.WandbLogger({ save_dir = root, id = "long" })
    logger:begin "fit"
    local text = ("0123456789"):rep(7000)
    logger:log_hyperparams { text = text }
    for i = 1, 300 do logger:log_metrics({ loss = i }, i) end
    logger:save()
    local list, most = read(path_of(logger))
    assert.equal(3, most)
    assert.equal('"' .. text .. '"', of_kind(list, "config")[1].values.text)
    assert.equal("300", of_kind(list, "history")[300].values.loss)
  end)

  it("continues its run from a checkpoint, without what came later", function()
    local logger = lt.loggers.WandbLogger({ save_dir = root, version = 0 })
    logger:begin "fit"
    logger:log_metrics({ a = 1 }, 1)
    logger:save()
    local state = logger:state_dict()
    logger:log_metrics({ a = 2 }, 2)
    logger:finalize "interrupted"
    local again = lt.loggers.WandbLogger({ save_dir = root, version = 0 })
    again:begin "fit"
    again:resume(1, state)
    again:log_metrics({ a = 3 }, 2)
    again:finalize "success"
    assert.equal(logger.id, again.id)
    local list = read(path_of(again))
    local history = of_kind(list, "history")
    assert.same({ 2, "1", "3", "1" }, { #history, history[1].values.a, history[2].values.a,
      history[2].values._step })
    assert.equal(1, #of_kind(list, "exit"))
  end)

  it("is a word of the Trainer, and ends its run after the last of several loops", function()
    local Line = tiny.Line:extend "Line"
    function Line:training_step(x)
      local loss = self:loss(x)
      self:log("loss", loss)
      return loss
    end
    function Line:test_step(x) self:log("test_loss", self:loss(x)) end
    local trainer = tiny.trainer { logger = "wandb", default_root_dir = root,
      log_every_n_steps = 1 }
    local net = Line()
    trainer:fit(net, tiny.same(2))
    trainer:test(net, tiny.same(1))
    local list = read(path_of(trainer.logger))
    assert.equal("exit", list[#list].kind)
    assert.equal(1, #of_kind(list, "exit"))
    local history = of_kind(list, "history")
    assert.same({ 3, "2" }, { #history, history[3].values["trainer/global_step"] })
    assert.truthy(history[3].values.test_loss)
    assert.truthy(c.io.kind(trainer.log_dir .. "/metrics.csv"))
  end)

  it("refuses an id that is not a name of a folder", function()
    assert.matches("WandbLogger: id must be letters, digits, _ and %-: got '../x'",
      tiny.error_of(lt.loggers.WandbLogger, { id = "../x" }))
  end)
end)
