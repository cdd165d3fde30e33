--- stdlib/files/json.lua: lt.json: JSON values, JSON files, and JSON Lines files.
--
-- A list is an array, a table with string keys an object (with sorted keys), an empty table is {};
-- null is nil, which ends a list and makes a field absent. Integers and floats are distinguished (1
-- and 1.0).

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"

local PLAIN <const> = { plain = true }
local json = {}

--- Encodes nil, a boolean, a number, a string, or a table of these as JSON. Raises an error for
--- other values, with their path.
function json.encode(value) return c.io.json_encode(value, PLAIN) end

--- Decodes JSON; returns nil and a message with line and column if the text is not valid JSON.
---@param text string
function json.decode(text)
  config.argument(text, "string", "json.decode", "text")
  return c.io.json_decode(text, PLAIN)
end

--- Reads the value in a file; returns nil and the reason if it cannot be read.
---@param path string
function json.read(path)
  config.argument(path, "string", "json.read", "path")
  local text <const>, message = c.io.read_file(path, nil, "json.read")
  if not text then return nil, message end
  local value, wrong = c.io.json_decode(text, PLAIN)
  if value == nil and wrong then return nil, ("json.read: %s: %s"):format(path, wrong) end
  return value
end

--- Writes a value to a file atomically; returns nil and the reason if that fails.
---@param path string
function json.write(path, value)
  config.argument(path, "string", "json.write", "path")
  local done, message = c.io.write_file(path, json.encode(value) .. "\n", "json.write")
  return done, message
end

--- Iterates over the values of a JSON Lines file: one per line, ignoring blank lines. Raises an
--- error with the line number if a line is not valid JSON, and if the file cannot be read.
---@param path string
function json.lines(path)
  config.argument(path, "string", "json.lines", "path")
  local text <const>, message = c.io.read_file(path, nil, "json.lines")
  if not text then errors.blame("%s", message) end
  local at, number = 1, 0
  return function()
    while at <= #text do
      local stop <const> = text:find("\n", at, true) or #text + 1
      local line <const> = text:sub(at, stop - 1)
      at, number = stop + 1, number + 1
      if line:find "%S" then
        local value, wrong = c.io.json_decode(line, PLAIN)
        if value == nil then
          errors.blame("json.lines: %s:%d: %s", path, number, wrong or "null is not a record")
        end
        return value
      end
    end
  end
end

--- Writes a list of values as JSON Lines; returns nil and the reason if that fails.
---@param path string
---@param values table
function json.write_lines(path, values)
  config.argument(path, "string", "json.write_lines", "path")
  config.argument(values, "table", "json.write_lines", "values")
  local lines = {}
  for k, value in ipairs(values) do lines[k] = json.encode(value) .. "\n" end
  local done, message = c.io.write_file(path, table.concat(lines), "json.write_lines")
  return done, message
end

return strict_arity.all(json, "json")
