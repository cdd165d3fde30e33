--- stdlib/apps/dashboard/labels.lua: tags and a note of a run, in a file of its folder that the
--- page may write where control is on.
local c = require "ltrain.c"
local json = require "ltrain.apps.dashboard.json"
local request_target = require "ltrain.apps.dashboard.request_target"

local labels = { FILE = "labels.json" }

local TAGS <const>, LETTERS <const>, NOTE <const> = 20, 40, 2000 -- at most

-- The first letters of a text of one line; nil where it is not one.
local function line_of(text, most)
  if type(text) ~= "string" or not utf8.len(text) then return nil end
  text = text:gsub("%c", " "):match "^%s*(.-)%s*$"
  local ends = utf8.offset(text, most + 1)
  text = ends and text:sub(1, ends - 1) or text
  return text ~= "" and text or nil
end

--- What a file holds, where anything may be wrong: {tags = a list of texts, note = a text or nil}.
function labels.clean(found)
  local tags, seen = json.list {}, {}
  for _, one in ipairs(type(found.tags) == "table" and found.tags or {}) do
    local tag = line_of(one, LETTERS)
    tag = tag and tag:gsub("[%s,]+", "-")
    if tag and not seen[tag] and #tags < TAGS then
      seen[tag] = true
      tags[#tags + 1] = tag
    end
  end
  return { tags = tags, note = line_of(found.note, NOTE) }
end

--- Writes what a request has, tags separated by commas and a note, into the folder of a run. Raises
--- {status, reason}.
function labels.write(run, query)
  local tags = {}
  for tag in request_target.text(query, "tags", ""):gmatch "[^,]+" do tags[#tags + 1] = tag end
  local found = labels.clean { tags = tags, note = request_target.text(query, "note", "") }
  local text = json.encode { tags = #found.tags > 0 and found.tags or nil, note = found.note }
  local ok, message = c.io.write_file(run.full .. "/" .. labels.FILE, text .. "\n")
  if not ok then error({ 409, message }, 0) end
  return found
end

return labels
