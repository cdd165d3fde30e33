--- stdlib/runs/record.lua: writes run.json: the description and the status of a run.
--
-- It is written whole when a loop of a Trainer begins and when that ends, however it ends; of a
-- process that was killed it says "running", and which process that was. Several loops of a Trainer
-- (fit, then test), and runs that were resumed in the folder, are entries of `loops`.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local process = require "ltrain.runs.process"

local record = {}

record.FILE = "run.json"
record.FORMAT = 1
record.MOST_BYTES = 1 << 26 -- of a file of JSON in the folder of a run

record.script = nil -- the path of the script, where the command line has one
record.keeps_code = true -- whether the script and its modules are copied into the folder
record.package = nil -- the `package` of that script
record.opened = nil -- called with the folder of each run that begins (optional)

-- What the entry in the folder says, to be continued; nil without one.
local function read_entry(path)
  local text = c.io.kind(path) and c.io.read_file(path, record.MOST_BYTES)
  local entry = text and c.io.json_decode(text, { plain = true })
  return type(entry) == "table" and entry.format == record.FORMAT and entry or nil
end

-- The first word of the command, after the program, that is a file.
local function script_of(command)
  for i = 2, #command do
    if command[i] ~= "" and c.io.kind(command[i]) == "file" then return command[i] end
  end
end

-- What does not change while the process runs.
local function describe()
  local command = process.command()
  local script = record.script or script_of(command)
  local text = script and c.io.kind(script) == "file" and c.io.read_file(script)
  local shown = require "ltrain.core.secrets".command(command)
  return {
    format = record.FORMAT, command = shown, script = script,
    script_sha256 = text and c.runtime.sha256 { text } or nil, process = process.own(),
    version = c.version, threads = c.runtime.get_threads(),
  }
end

-- A run continues where its run.json cannot be written: loggers say what is wrong with the folder.
local function write(kept)
  local ok, message = c.io.write_file(kept.path, c.io.json_encode(kept.entry, { plain = true })
    .. "\n")
  if not ok then console.say("warning: " .. message) end
end

--- A loop begins. `kept`: what this returned for the loop before of the same Trainer, or nil.
--- of: {folder =, fn =, started =, ranks =, hosts = theirs or nil, seed =, device = its name,
--- resumed_from = path or nil, continues = whether the folder is that of the run that it is resumed
--- from}. Returns the record; nil where none can be written.
function record.begin(kept, of)
  local path = of.folder .. "/" .. record.FILE
  if not c.io.make_folder(of.folder) then return nil end
  local before = kept and kept.path == path and kept.entry or of.continues and read_entry(path)
  local entry = describe()
  entry.started = before and before.started or of.started
  entry.loops = before and before.loops or {}
  entry.ranks, entry.seed, entry.status, entry.loop = of.ranks, of.seed, "running", of.fn
  entry.devices, entry.hosts = { of.device }, of.hosts
  entry.data_sha256 = before and before.data_sha256 or nil
  entry.loops[#entry.loops + 1] = { loop = of.fn, started = of.started, status = "running",
    resumed_from = of.resumed_from }
  kept = { path = path, entry = entry }
  write(kept)
  if record.keeps_code then
    require "ltrain.runs.code_snapshot".keep(of.folder, entry.script, record.package)
  end
  if record.opened then record.opened(of.folder) end
  return kept
end

--- Of the data of a fit: its hash (stdlib/runs/fingerprint.lua).
function record.note_data(kept, hash)
  if kept.entry.data_sha256 == hash then return end
  kept.entry.data_sha256 = hash
  write(kept)
end

--- It ends. how: {status = "finished", "failed" or "interrupted", error = what was raised, epoch =,
--- step =}.
function record.finish(kept, how)
  local entry, now = kept.entry, c.runtime.time()
  local loop = entry.loops[#entry.loops]
  entry.status, entry.ended, entry.epoch, entry.step = how.status, now, how.epoch, how.step
  entry.error = how.error ~= nil and c.runtime.error_text(how.error) or nil
  entry.best_checkpoint, entry.last_checkpoint = how.best_checkpoint, how.last_checkpoint
  loop.status, loop.ended, loop.error = entry.status, now, entry.error
  write(kept)
end

return record
