--- stdlib/trainer/ranks/dummy_logger.lua: the logger of ranks that do not log: methods do nothing,
--- fields are those of the real logger.
--
-- Scripts say `self.logger:log_metrics(...)` on every rank: fields are the logger's, methods do
-- nothing.

local function nothing() end

--- A silent one for `logger`; a silent one is returned as it is.
return function(logger)
  if rawget(logger, "is_silent") then return logger end
  return setmetatable({ is_silent = true }, { __index = function(_, key)
    local value = logger[key]
    return type(value) == "function" and nothing or value
  end })
end
