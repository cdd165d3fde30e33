--- stdlib/loggers/JSONLinesLogger.lua: writes metrics to .../version_N/metrics.jsonl, one row per
--- line.
local FileLogger = require "ltrain.loggers.FileLogger"
local c = require "ltrain.c"

local JSONLinesLogger = FileLogger:extend("JSONLinesLogger")

JSONLinesLogger.file = "metrics.jsonl"

function JSONLinesLogger:encode(rows)
  local lines = {}
  for i, row in ipairs(rows) do lines[i] = c.io.json_encode(row, { plain = true }) .. "\n" end
  return table.concat(lines)
end

return JSONLinesLogger
