--- stdlib/files/json.lua: lt.json: values as JSON, and files of one value or of one a line.
--
-- A list is an array, a table with names an object (its keys sorted), an empty table is {}; null is
-- nil: a list ends there, a field is absent. Whole numbers and others stay apart (1 and 1.0).

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local exact = require "ltrain.core.exact"

local PLAIN <const> = { plain = true }
local json = {}

--- The text of a value: of nil, booleans, numbers, text and tables of these. Raises on what JSON
--- has no form for, naming its place.
function json.encode(value) return c.io.json_encode(value, PLAIN) end

--- The value of a text; nil and what is wrong, with line and column, where it is not JSON.
---@param text string
function json.decode(text)
  config.argument(text, "string", "json.decode", "text")
  return c.io.json_decode(text, PLAIN)
end

--- The value in a file; nil and the reason where it cannot be read.
---@param path string
function json.read(path)
  config.argument(path, "string", "json.read", "path")
  local text <const>, message = c.io.read_file(path)
  if not text then return nil, message end
  local value, wrong = c.io.json_decode(text, PLAIN)
  if value == nil and wrong then return nil, ("json.read: %s: %s"):format(path, wrong) end
  return value
end

-- true, or nil and the reason.
local function save(path, text) return c.io.write_file(path, text) end

--- Write a value into a file, whole or not at all; nil and the reason where that fails.
---@param path string
function json.write(path, value)
  config.argument(path, "string", "json.write", "path")
  return save(path, json.encode(value) .. "\n")
end

--- Iterate over the values of a file of JSON Lines: one in each line, blank ones left out. Raises
--- where a line is no JSON, with its number, and where the file cannot be read.
---@param path string
function json.lines(path)
  config.argument(path, "string", "json.lines", "path")
  local text <const>, message = c.io.read_file(path)
  if not text then errors.blame("json.lines: %s", (message:gsub("^read: ", ""))) end
  local at, number = 1, 0
  return function()
    while at <= #text do
      local stop <const> = text:find("\n", at, true) or #text + 1
      local line <const> = text:sub(at, stop - 1)
      at, number = stop + 1, number + 1
      if line:find "%S" then
        local value, wrong = c.io.json_decode(line, PLAIN)
        if value == nil then
          errors.blame("json.lines: %s:%d: %s", path, number, wrong or "null is no record")
        end
        return value
      end
    end
  end
end

--- Write a list of values as JSON Lines; nil and the reason where that fails.
---@param path string
---@param values table
function json.write_lines(path, values)
  config.argument(path, "string", "json.write_lines", "path")
  config.argument(values, "table", "json.write_lines", "values")
  local lines = {}
  for k, value in ipairs(values) do lines[k] = json.encode(value) .. "\n" end
  return save(path, table.concat(lines))
end

return exact.all(json, "json")
