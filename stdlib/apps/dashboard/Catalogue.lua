--- stdlib/apps/dashboard/Catalogue.lua: finds the runs in folders, and describes each for the list
--- of runs.
--
-- Folders are looked through again and again: of a run that has not changed nothing is read. Runs
-- are found by ids that are made here; links are not followed, so that a folder that was copied
-- from elsewhere shows nothing but what is in it.
local FileTail = require "ltrain.apps.dashboard.FileTail"
local RunMetrics = require "ltrain.apps.dashboard.RunMetrics"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local labels = require "ltrain.apps.dashboard.labels"
local process = require "ltrain.runs.process"
local record = require "ltrain.runs.record"
local run_json = require "ltrain.runs.run_json"

local Catalogue = class.extend(nil, "Catalogue")

local DEPTH <const> = 4
local FILES <const> = { record.FILE, "metrics.csv", "metrics.jsonl" }
local MOST <const> = 1 << 22 -- bytes of a file of JSON
local LAST <const> = 1 << 16 -- bytes at the end of metrics.csv
local SILENT <const> = 600 -- seconds: a fit writes system.csv each minute at least
local FRESH <const> = 0.5 -- seconds within which nothing is looked for again
local PLAIN <const> = { plain = true }
local TEXT <const> = 200 -- of an error, in the list

-- How many bytes the paths of several folders have in common: those of the folder, and its slash,
-- that they are all in.
local function common(roots)
  local folder = roots[1]:match "^(.*/)[^/]*$" or ""
  for _, root in ipairs(roots) do
    while root:sub(1, #folder) ~= folder do folder = folder:sub(1, -2):match "^(.*/)" or "" end
  end
  return #folder
end

--- `roots`: paths of folders.
function Catalogue:init(roots)
  self.roots, self.runs, self.by_id = roots, {}, {}
  self.common = common(roots)
  self.scanned = -math.huge
end

local function join(path, name)
  if path == "" or name == "" then return path .. name end
  return path .. "/" .. name
end

--- What a file of a run's folder holds, at most `most` bytes from `from` on, and its size; nil
--- where it is not there.
function Catalogue.read(run, name, from, most)
  return c.io.read_below(run.root, join(run.path, name), from or 0, most or MOST)
end

--- As c.io.stat_below, of a file of a run.
function Catalogue.stat(run, name)
  return c.io.stat_below(run.root, join(run.path, name))
end

local function is_run(root, path)
  for _, name in ipairs(FILES) do
    if c.io.stat_below(root, join(path, name)) == "file" then return true end
  end
  return false
end

local function add_folders(found, root, path, depth)
  if is_run(root, path) then
    found[#found + 1] = { root = root, path = path }
    return
  end
  if depth == 0 then return end
  for _, name in ipairs(c.io.list_folder(join(root, path)) or {}) do
    local below = join(path, name)
    if name:sub(1, 1) ~= "." and c.io.stat_below(root, below) == "folder" then
      add_folders(found, root, below, depth - 1)
    end
  end
end

local function new_run(self, root, path)
  local full = join(root, path)
  local run = { root = root, path = path, full = full }
  run.id = c.runtime.sha256({ full }):sub(1, 16)
  run.name = path
  if #self.roots > 1 or path == "" then run.name = full:sub(self.common + 1) end
  run.metrics = RunMetrics(run)
  run.system = RunMetrics(run, "system.csv")
  run.media = FileTail(run, "media/index.jsonl")
  run.layers = FileTail(run, "layers.jsonl")
  run.marks = {}
  return run
end

-- What is known of a file, as one text: it changes when the file does.
local function mark_of(run, name)
  local kind, size, modified, number = Catalogue.stat(run, name)
  return kind and ("%s %d %.9f %d"):format(kind, size, modified, number) or ""
end

-- An object of JSON, {} without a file; nil and why it is none.
local function read_object(run, name)
  local text, size = Catalogue.read(run, name)
  if not text then return {} end
  if #text < size then return nil, name .. ": is too large" end
  local value = c.io.json_decode(text, PLAIN)
  if type(value) ~= "table" then return nil, name .. ": is not an object of JSON" end
  return value
end

-- The last value of each metric, as far as the end of the file has it.
local function last_values(run)
  local head, size = Catalogue.read(run, "metrics.csv", 0, LAST)
  local header = head and head:match "^[^\n]*\n"
  if not header then return {} end
  local text = head
  if size > LAST then
    text = Catalogue.read(run, "metrics.csv", size - LAST, LAST) or ""
    text = header .. (text:match "^[^\n]*\n(.*)$" or "")
  end
  local curves, last = c.io.curves(), {}
  if not curves:feed(text) then return {} end
  for k, name in ipairs(curves:names()) do
    local _, _, values = curves:points(k, "row", nil, nil, 0)
    last[name] = values[#values]
  end
  local steps, epochs
  for k in ipairs(curves:names()) do
    local s, e = curves:points(k, "row", nil, nil, 0)
    if s[1] and (not steps or s[#s] > steps) then steps, epochs = s[#s], e[#e] end
  end
  return last, steps, epochs
end

-- Of a run on another machine, or of a folder that was copied from there, it is not known whether
-- its process is alive: one that has written nothing for a while may be gone.
local function is_silent(run)
  if process.is_alive(run.info.process or {}) ~= nil then return false end
  local newest = -math.huge
  for _, name in ipairs { record.FILE, "metrics.csv", "system.csv", "console.log" } do
    local kind, _, modified = Catalogue.stat(run, name)
    if kind then newest = math.max(newest, modified) end
  end
  return c.runtime.time() - newest > SILENT
end

-- Reads what has changed of a run; whether its entry in the list has.
local function refresh(run)
  local marks, changed = run.marks, {}
  for _, name in ipairs { record.FILE, "hparams.json", "metrics.csv", labels.FILE } do
    local mark = mark_of(run, name)
    changed[name] = marks[name] ~= mark
    marks[name] = mark
  end
  local before = run.status
  if changed[record.FILE] or not run.info then
    local info, message = read_object(run, record.FILE)
    local problem = message or run_json.refuse(run.name, info)
    run.info, run.info_problem = problem and {} or run_json.clean(info), problem
  end
  if changed["hparams.json"] or not run.hparams then
    local hparams, message = read_object(run, "hparams.json")
    run.hparams, run.hparams_problem = run_json.flat(hparams or {}), message
  end
  if changed["metrics.csv"] or not run.last then
    run.last, run.last_step, run.last_epoch = last_values(run)
    local _, _, modified = Catalogue.stat(run, "metrics.csv")
    run.modified = modified
  end
  if changed[labels.FILE] or not run.labels then
    run.labels = labels.clean(read_object(run, labels.FILE) or {})
  end
  run.problem = run.info_problem or run.hparams_problem
  run.status = run.info_problem and "unknown" or run_json.status(run.info)
  if run.status == "running" and is_silent(run) then run.status = "unknown" end
  return run.status ~= before or changed[labels.FILE]
end

--- What the list says of a run.
function Catalogue.summary(run)
  local info = run.info
  local function number(value) return type(value) == "number" and value or nil end
  local started = number(info.started)
  local ended = run.status == "running" and c.runtime.time() or number(info.ended) or run.modified
  local message = type(info.error) == "string" and info.error:match("[^\n]*"):sub(1, TEXT) or nil
  return {
    id = run.id, name = run.name, status = run.status, started = started, error = message,
    seconds = started and ended and math.max(ended - started, 0) or nil,
    epoch = run.last_epoch or number(info.epoch), step = run.last_step or number(info.step),
    hparams = run.hparams, last = run.last, problem = run.problem,
    tags = run.labels.tags, note = run.labels.note,
  }
end

-- Newer ones first; those that do not say when they were started last.
local function by_start(a, b)
  local x, y = a.info.started or -1, b.info.started or -1
  if x ~= y and type(x) == "number" and type(y) == "number" then return x > y end
  return a.name < b.name
end

--- Looks through the folders. Returns what has changed since the last time: a list of runs that are
--- new or have another status, and a list of ids of those that are gone.
function Catalogue:scan()
  local now = c.runtime.clock()
  if now - self.scanned < FRESH then return {}, {} end
  local found, changed, gone, ids = {}, {}, {}, {}
  for _, root in ipairs(self.roots) do add_folders(found, root, "", DEPTH) end
  local list = {}
  for _, place in ipairs(found) do
    local key = join(place.root, place.path)
    local run = self.runs[key] or new_run(self, place.root, place.path)
    if not ids[run.id] then
      ids[run.id] = run
      if refresh(run) then changed[#changed + 1] = run end
      list[#list + 1], self.runs[key] = run, run
    end
  end
  for key, run in next, self.runs do
    if ids[run.id] ~= run then
      gone[#gone + 1] = run.id
      self.runs[key] = nil
    end
  end
  table.sort(list, by_start)
  self.list, self.by_id = list, ids
  self.scanned = c.runtime.clock()
  return changed, gone
end

--- The run of an id, as it is now; nil without one.
function Catalogue:find(id)
  local run = self.by_id[id]
  if run and is_run(run.root, run.path) then
    refresh(run)
    return run
  end
end

return Catalogue
