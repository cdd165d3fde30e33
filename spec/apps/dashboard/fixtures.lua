-- spec/apps/dashboard/fixtures.lua: runs for the dashboard's page: one of each kind that there is,
-- and many.
--
--   LUA_PATH="$PWD/?.lua;;" ltrain spec/apps/dashboard/fixtures.lua FOLDER [RUNS]
--
-- Nothing is trained: the files are written as a Trainer writes them, with values of a formula.
local c = require "ltrain.c"
local lt = require "ltrain"
local media = require "ltrain.loggers.media"
local number_text = require "ltrain.loggers.number_text"
local process = require "ltrain.runs.process"

local fixtures = {}

local HOSTILE <const> = [[<img src=x onerror="document.title='taken'"><script>1</script>]]
fixtures.hostile = HOSTILE
fixtures.error = "model.lua:31: mse_loss: shapes differ: [32, 10] and [32]\n" .. HOSTILE

local START <const> = 1795416000.5
local NOBODY <const> = 4194399 -- no process has this number: it is above the limit of Linux

-- Not c.io.write_file, which waits for the disk.
local function write(path, text)
  assert(c.io.make_folder(path:match "(.+)/"))
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function json(value) return c.io.json_encode(value, { plain = true }) .. "\n" end

-- A loss that falls, with noise that is the same each time.
local function loss(k, step)
  local noise = math.sin(step * 12.9898 + k * 78.233) * 43758.5453
  noise = noise - math.floor(noise)
  return (0.4 + 0.1 * k % 1) * math.exp(-step / (300 + 20 * k)) + 0.02 + 0.05 * noise
end

--- The text of a metrics.csv: train_loss each step, val_loss and acc each 100, lr.
function fixtures.metrics(k, steps, change)
  local lines = { "epoch,step,train_loss,val_loss,val/acc,lr" }
  for step = 0, steps - 1 do
    local row = { step // 100, step, loss(k, step), "", "", 0.1 * 0.999 ^ step }
    if step % 100 == 99 then
      row[4], row[5] = loss(k, step) * 1.1, 1 - loss(k, step)
    end
    if change then change(row, step) end
    for i = 3, #row do
      if math.type(row[i]) then row[i] = number_text(row[i]) end
    end
    lines[#lines + 1] = table.concat(row, ",")
  end
  return table.concat(lines, "\n") .. "\n"
end

--- One folder: o has status, steps, hparams, error, process, change, script, console.
function fixtures.run(path, k, o)
  local steps = o.steps or 300
  local started = o.started or START + 60 * k
  write(path .. "/metrics.csv", fixtures.metrics(k, steps, o.change))
  write(path .. "/hparams.json", json(o.hparams or { lr = 0.1 / (k + 1), width = 8 * (k + 1),
    model = { depth = 2, name = "a" } }))
  write(path .. "/run.json", json { format = 1, status = o.status or "finished", started = started,
    ended = o.status ~= "running" and started + 125.5 or nil, epoch = (steps - 1) // 100,
    step = steps, seed = k, ranks = o.ranks or 1, threads = 2, version = lt.version, loop = "fit",
    command = { "ltrain", "run", "model.lua", "--lr", tostring(0.1 / (k + 1)) }, error = o.error,
    script = "model.lua", script_sha256 = ("ab"):rep(32),
    process = o.process or { host = c.runtime.hostname(), pid = NOBODY, ticks = 1 },
    loops = { { loop = "fit", started = started, status = o.status or "finished" } } })
  write(path .. "/console.log", o.console or ("epoch 0: 10%%\repoch 0: 100%%\nrun %d\n"):format(k))
end

local function add_media(path)
  local taken = {}
  for _, step in ipairs { 100, 200, 300 } do
    local x = lt.arange(0, 16 * 16):reshape(1, 16, 16) / 256
    local files = media.write_images(path, "digits", { (x * step / 300 * 255):to "u8",
      ((1 - x) * 255):to "u8" }, step, taken)
    media.add(path, { kind = "image", name = "digits", step = step, files = files })
    media.add(path, { kind = "text", name = "notes", step = step,
      text = ("step %d: %s\n  ünïcode, %s"):format(step, HOSTILE, ("long "):rep(40)) })
    local edges, counts = {}, {}
    for i = 0, 30 do edges[i + 1] = -1.5 + i / 10 end
    for i = 1, 30 do
      counts[i] = math.floor(1000 * math.exp(-(edges[i] + 0.05) ^ 2 / (0.3 * step / 100)))
    end
    media.add(path, { kind = "histogram", name = "weights", step = step, edges = edges,
      counts = counts })
  end
  local ramp = lt.arange(0, 256):reshape(1, 16, 16):to "u8"
  local files = media.write_images(path, "samples", { ramp }, 150, taken)
  media.add(path, { kind = "sample", name = "train_loss", step = 150, value = 9.5, usual = 0.25,
    files = files, samples = { { index = 17, loss = 88.125, text = "label 7 " .. HOSTILE },
      { index = 3, loss = 0.5 } } })
end

-- Rows of what two ranks have measured, and records of two layers, of which one has lost values.
local function add_records(path)
  for rank = 0, 1 do
    local rows = { "epoch,step,time,steps_per_second,memory,data_wait,rank_wait,device_memory" }
    for k = 0, 99 do
      rows[k + 2] = ("0,%d,%.1f,%g,%d,0.25,%g,nan"):format(k, START + k, 50 + k / 10,
        (100 + rank) << 20, rank * 0.125)
    end
    write(("%s/system%s.csv"):format(path, rank == 0 and "" or ".rank1"), table.concat(rows, "\n")
      .. "\n")
  end
  local lines = {}
  for k = 0, 20 do
    local of = { mean = 0.5, std = 1 / (k + 1), min = -1, max = 1, norm = 2, nonfinite = 0,
      edges = { -1, 0, 1 }, counts = { 3, 4 } }
    local lost = { nonfinite = k < 20 and 0 or 8, mean = k < 20 and 0.5 or nil }
    lines[k + 1] = json { step = 10 * k, epoch = 0, layers = {
      { name = "body.1.weight", shape = { 8, 2 }, weight = of, grad = of },
      { name = "body.1.bias", shape = { 8 }, weight = lost } } }
  end
  write(path .. "/layers.jsonl", table.concat(lines))
end

--- A run of each kind below `root`; running: whether one says that this process trains it.
function fixtures.kinds(root, running)
  fixtures.run(root .. "/finished", 1, { steps = 2000 })
  fixtures.run(root .. "/media", 2, { ranks = 2, change = function(row, step)
    if step == 150 then row[3] = 9.5 end
  end })
  add_media(root .. "/media")
  add_records(root .. "/media")
  write(root .. "/media/checkpoints/epoch=2-step=300.ckpt", "weights")
  fixtures.run(root .. "/broken", 3, { status = "failed", steps = 120,
    error = fixtures.error, change = function(row, step)
      if step >= 100 then row[3] = ({ 0 / 0, math.huge, -math.huge })[step % 3 + 1] end
    end })
  fixtures.run(root .. "/killed", 4, { status = "running", steps = 80 })
  fixtures.run(root .. "/stopped", 5, { status = "interrupted" })
  fixtures.run(root .. "/tiny", 6, { steps = 1, hparams = { name = HOSTILE } })
  if running then
    fixtures.run(root .. "/goes_on", 7, { status = "running", steps = 500, process = process.own(),
      started = c.runtime.time() - 100 })
  end
end

--- n small runs, of which every tenth has failed.
function fixtures.many(root, n)
  for k = 1, n do
    fixtures.run(("%s/sweep/trial_%d"):format(root, k), k, { steps = 20 + k % 30,
      status = k % 10 == 0 and "failed" or "finished", error = k % 10 == 0 and "diverged" or nil })
  end
end

--- 20 runs of 2,000 steps each, at steps of their own.
function fixtures.twenty(root)
  for k = 1, 20 do
    fixtures.run(("%s/long_%d"):format(root, k), k, { steps = 2000, change = function(row, step)
      row[2] = step * 2 + k % 2
    end })
  end
end

if arg and arg[0] and arg[0]:find "fixtures%.lua$" then
  fixtures.kinds(arg[1], true)
  fixtures.many(arg[1], tonumber(arg[2]) or 0)
end

return fixtures
