--- stdlib/apps/dashboard/records.lua: serves a run's records besides its metrics: images and texts,
--- console output, checkpoints.
local Catalogue = require "ltrain.apps.dashboard.Catalogue"
local c = require "ltrain.c"
local complete_lines = require "ltrain.core.complete_lines"
local json = require "ltrain.apps.dashboard.json"
local media = require "ltrain.loggers.media"
local request_target = require "ltrain.apps.dashboard.request_target"

local records = {}

local PNG <const> = "\x89PNG\r\n\x1a\n"
local MOST_IMAGE <const> = 1 << 26
local MOST_ENTRY <const> = 1 << 22
local CONSOLE <const> = 1 << 18

-- Media.

--- The entries of media/index.jsonl as far as it has come: {at =, size =, kind =, name =} each.
function records.index(run)
  run.entries = run.entries or {}
  run.media:poll(function(text, position)
    local taken = 0
    for line, after in complete_lines(text) do
      local entry = #line <= MOST_ENTRY and media.decode(line)
      table.insert(run.entries, { at = position + taken, size = #line,
        kind = entry and entry.kind or "", name = entry and entry.name })
      taken = after - 1
    end
    return taken
  end, function() run.entries = {} end)
  return run.entries
end

local function read_entry(run, n)
  local place = run.entries[n]
  local text = place and Catalogue.read(run, "media/index.jsonl", place.at, place.size)
  return text and media.decode(text)
end

local function files_of(run, n, entry)
  local list = json.list {}
  for k in ipairs(type(entry.files) == "table" and entry.files or {}) do
    list[k] = ("/media/%s/%d/%d"):format(run.id, n - 1, k - 1)
  end
  return list
end

--- GET /api/run/ID/media
function records.media(run, query)
  local kind, name = request_target.text(query, "kind"), request_target.text(query, "name")
  local limit = request_target.integer(query, "limit", 50, 1, 1000)
  local offset = request_target.integer(query, "offset", 0, -(1 << 40), 1 << 40)
  local chosen = {}
  for n, place in ipairs(records.index(run)) do
    if place.kind ~= "" and (not kind or place.kind == kind)
      and (not name or place.name == name) then
      chosen[#chosen + 1] = n
    end
  end
  if offset < 0 then offset = math.max(#chosen + offset, 0) end
  local entries = json.list {}
  for i = offset + 1, math.min(offset + limit, #chosen) do
    local entry = read_entry(run, chosen[i])
    if entry then
      entry.files = entry.files and files_of(run, chosen[i], entry) or nil
      entries[#entries + 1] = entry
    end
  end
  return { total = #chosen, offset = offset, entries = entries }
end

--- What media there are: a list of {kind =, name =, count =}.
function records.media_names(run)
  local list, known = json.list {}, {}
  for _, place in ipairs(records.index(run)) do
    if place.kind ~= "" then
      local key = place.kind .. " " .. place.name
      if not known[key] then
        known[key] = { kind = place.kind, name = place.name, count = 0 }
        list[#list + 1] = known[key]
      end
      known[key].count = known[key].count + 1
    end
  end
  return list
end

--- GET /media/ID/ENTRY/K: the bytes of an image. Raises {status, reason}.
function records.image(run, entry, k)
  records.index(run)
  local n, i = math.tointeger(tonumber(entry)), math.tointeger(tonumber(k))
  local found = n and i and read_entry(run, n + 1)
  local files = found and type(found.files) == "table" and found.files or {}
  local file = files[(i or -1) + 1]
  if type(file) ~= "string" then error({ 404, "no such image" }, 0) end
  local bytes, size = Catalogue.read(run, "media/" .. file, 0, MOST_IMAGE)
  if not bytes then error({ 404, "no such image" }, 0) end
  if size > MOST_IMAGE or bytes:sub(1, #PNG) ~= PNG then
    error({ 404, "not a PNG, or too large" }, 0)
  end
  return bytes
end

-- The console.

-- Where a character of UTF-8 that may have been cut begins, at the end of a text.
local function whole(text)
  local cut = text:match "()[\xC2-\xF4][\x80-\xBF]*$"
  if not cut or #text - cut >= 3 or utf8.len(text, cut) then return #text end
  return cut - 1
end

--- GET /api/run/ID/console
function records.console(run, query)
  local from = request_target.integer(query, "from", 0, -(1 << 40), 1 << 40)
  local _, size = Catalogue.stat(run, "console.log")
  size = size or 0
  local at = from >= 0 and math.min(from, size) or math.max(size + from, 0)
  local text, now = Catalogue.read(run, "console.log", at, CONSOLE)
  if not text then return { from = 0, to = 0, size = 0, text = "" } end
  if from < 0 and at > 0 then
    local line = text:find("\n", 1, true)
    if line then at, text = at + line, text:sub(line + 1) end
  end
  local n = at + #text < now and whole(text) or #text
  return { from = at, to = at + n, size = now, text = text:sub(1, n) }
end

-- Checkpoints.

--- A list of {file =, bytes =, modified =, best =, last =}, by time.
function records.checkpoints(run)
  local list = json.list {}
  local folder = run.full .. "/checkpoints"
  local function is(path, name)
    return type(path) == "string" and path:match "[^/]*$" == name or nil
  end
  if Catalogue.stat(run, "checkpoints") ~= "folder" then return list end
  for _, name in ipairs(c.io.list_folder(folder) or {}) do
    local kind, bytes, modified = Catalogue.stat(run, "checkpoints/" .. name)
    if kind and name:find "%.ckpt$" then
      list[#list + 1] = { file = name, bytes = kind == "file" and bytes or nil,
        modified = modified, best = is(run.info.best_checkpoint, name),
        last = is(run.info.last_checkpoint, name) }
    end
  end
  table.sort(list, function(a, b)
    if a.modified ~= b.modified then return a.modified < b.modified end
    return a.file < b.file
  end)
  return list
end

return records
