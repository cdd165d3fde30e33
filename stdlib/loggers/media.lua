--- stdlib/loggers/media.lua: images, texts and histograms in the folder media/ of a run.
--
-- Images are files, `<name>/<step>.png`. What there is stands in media/index.jsonl, one object a
-- line: {kind =, name =, step =}, and `files` of images (paths below media/), `text` of texts, and
-- what Logger:log_histogram is given of histograms.
local c = require "ltrain.c"
local checked_io = require "ltrain.loggers.checked_io"
local complete_lines = require "ltrain.core.complete_lines"
local schema = require "ltrain.core.schema"
local write_unsynced = require "ltrain.core.write_unsynced"

local media = {}

media.FOLDER, media.INDEX = "media", "media/index.jsonl"

-- What an entry of each kind has besides its name and step. Of those who have not written it with
-- this logger each field may be anything.
local STEP <const> = { name = "string", step = "number" }
local KINDS <const> = {
  image = { files = { list = "string" } }, text = { text = "string" },
  histogram = { counts = "table", edges = "table" },
  sample = { samples = "table", files = { list = "string", optional = true } },
}

--- The entry that a line of the index is; nil where it is none.
function media.decode(line)
  local entry = c.io.json_decode(line, { plain = true })
  local fields = type(entry) == "table" and type(entry.kind) == "string" and KINDS[entry.kind]
  if not fields or schema.wrong(entry, { fields = STEP })
    or schema.wrong(entry, { fields = fields })
  then
    return nil
  end
  return entry
end

--- A name as a path: what is not a letter, digit or one of ._=/- is _; no part of it is "..".
function media.path_of(name)
  local path = name:gsub("[^%w%._=/%-]", "_"):gsub("//+", "/"):gsub("^/", ""):gsub("/$", "")
  return ("/" .. path .. "/"):gsub("/%.+%f[/]", "/_"):sub(2, -2)
end

--- Appends an entry to the index of a run's folder.
function media.add(log_dir, entry)
  checked_io(c.io.make_folder(log_dir .. "/" .. media.FOLDER))
  local line <const> = c.io.json_encode(entry, { plain = true }) .. "\n"
  checked_io(c.io.append_file(log_dir .. "/" .. media.INDEX, line))
end

--- Writes images; returns their paths. `taken`: a table of the paths that this run has written.
function media.write_images(log_dir, name, images, step, taken)
  local png <const> = require "ltrain.loggers.png"
  local files, base = {}, ("%s/%06d"):format(media.path_of(name), step)
  checked_io(c.io.make_folder(("%s/%s/%s"):format(log_dir, media.FOLDER, media.path_of(name))))
  for i, image in ipairs(images) do
    local path, number = base .. ".png", 1
    while taken[path] do
      number = number + 1
      path = ("%s_%d.png"):format(base, number)
    end
    taken[path], files[i] = true, path
    checked_io(write_unsynced(("%s/%s/%s"):format(log_dir, media.FOLDER, path), png(image)))
  end
  return files
end

--- Keeps the first `count` entries of the index.
function media.cut(log_dir, count)
  local path = log_dir .. "/" .. media.INDEX
  local text = c.io.kind(path) and c.io.read_file(path)
  if not text then return end
  local kept = {}
  for line in complete_lines(text) do
    if #kept < count and line ~= "" then kept[#kept + 1] = line .. "\n" end
  end
  checked_io(c.io.write_file(path, table.concat(kept)))
end

return media
