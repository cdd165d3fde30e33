--- stdlib/apps/sweep/sweep_files.lua: the files of a sweep: sweep.json describes it, sweep.csv
--- lists its trials and their status.
--
-- Both are written whole or not at all. sweep.json comes first and never changes: a second call
-- must ask for the same sweep.
local c = require "ltrain.c"
local csv_field = require "ltrain.core.csv_field"
local errors = require "ltrain.core.errors"
local number_text = require "ltrain.loggers.number_text"
local tree = require "ltrain.core.tree"

local sweep_table = {}

local FORMAT <const> = 1
-- What a second call may change: how many, and how they are run.
local MAY_DIFFER <const> = { trials = true, format = true, script_sha256 = true }

local function text_of(value)
  return c.io.json_encode(value, { plain = true })
end

-- How a sweep that is there differs from the one that is asked for; nil when it does not.
local function difference(there, asked)
  for _, pair in ipairs { { there, asked }, { asked, there } } do
    for key in tree.pairs(pair[1]) do
      local one, other = text_of { there[key] }, text_of { asked[key] }
      if not MAY_DIFFER[key] and one ~= other then
        return ("%s: %s there, %s asked for"):format(key, one, other)
      end
    end
  end
end

--- Opens the folder of a sweep, made now or by an earlier call. `asked`: a table of plain values
--- that says which sweep it is. Nil and what is wrong.
function sweep_table.open(folder, asked)
  local path = folder .. "/sweep.json"
  asked.format = FORMAT
  if not c.io.kind(path) then return c.io.write_file(path, text_of(asked) .. "\n") end
  local text, message = c.io.read_file(path)
  if not text then return nil, message end
  local there = c.io.json_decode(text, { plain = true })
  if type(there) ~= "table" or math.type(there.format) ~= "integer" then
    return nil, path .. ": is not the file of a sweep"
  elseif there.format > FORMAT then
    return nil, ("%s: has format %d, this version of ltrain reads up to %d"):format(path,
      there.format, FORMAT)
  end
  local differs = difference(there, asked)
  if not differs then return true end
  return nil, ("%s is the folder of another sweep (%s): name another by --dir"):format(folder,
    errors.printable(differs))
end

local function field(value)
  if value == nil then return "" end
  return csv_field.name(type(value) == "number" and number_text(value) or tostring(value))
end

local COLUMNS <const> = { "trial", "status", "value", "step", "epochs", "seconds" }

--- Writes sweep.csv: a row a trial, with its values of the swept names.
function sweep_table.write(folder, metric, names, trials)
  local head, lines = {}, {}
  for i, name in ipairs(COLUMNS) do head[i] = field(name == "value" and metric or name) end
  for _, name in ipairs(names) do head[#head + 1] = field(name) end
  lines[1] = table.concat(head, ",") .. ",folder,error\n"
  for _, trial in ipairs(trials) do
    local row = {}
    for i, name in ipairs(COLUMNS) do row[i] = field(trial[name]) end
    for _, name in ipairs(names) do row[#row + 1] = field(trial.values[name]) end
    row[#row + 1], row[#row + 2] = field(trial.folder), field(trial.error)
    lines[#lines + 1] = table.concat(row, ",") .. "\n"
  end
  return c.io.write_file(folder .. "/sweep.csv", table.concat(lines))
end

return sweep_table
