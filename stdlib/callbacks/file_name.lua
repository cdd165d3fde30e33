--- stdlib/callbacks/file_name.lua: names of checkpoints from patterns: "{epoch:02d}-{loss:.2f}".
local file_name = {}

-- The text of a metric in a format of the pattern ("02d", ".2f").
local function number_text(value, spec)
  if spec == "" then
    return math.type(value) == "integer" and tostring(value) or ("%.6g"):format(value)
  end
  local integer = spec:find "[di]$"
  if integer then value = math.tointeger(value) or math.floor(value + 0.5) end
  local ok, text = pcall(string.format, "%" .. spec, value)
  return ok and text or tostring(value)
end

--- The pattern with each {name} or {name:format} replaced by the metric of that name (0 when there
--- is none), or by "name=value".
function file_name.format(pattern, metrics, with_names)
  return (pattern:gsub("{([^{}:]+):?([^{}]*)}", function(name, spec)
    local value = metrics[name] or 0
    if value ~= value or value == math.huge or value == -math.huge then
      value = tostring(value)
    else
      value = number_text(value, spec)
    end
    return with_names and name .. "=" .. value or value
  end))
end

return file_name
