-- stdlib/core/caller_errors.lua: explains Lua errors that were raised inside the library because a
-- script called a method wrongly: the script's line, and what is wrong with `self`.
--
-- Such an error has no line, or one of ours. A method of a class that was called on the class, or
-- with a dot, finds fields missing that each object has.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local raw <const> = c.runtime.frames

-- What the first parameter of a method is, where it is not an object.
local function of_self(frame)
  for _, one in ipairs(raw.variables(frame.thread, frame.depth)) do
    local self <const> = one.value
    if one.name == "self" and type(self) == "table" and class.made[self] then
      return ("%s is a class: make an object first: local x = %s(...)"):format(self.__name,
        self.__name)
    elseif one.name == "self" and type(self) ~= "table" and type(self) ~= "userdata" then
      return "a method was called with a dot: write x:name(...): got " .. errors.show(self)
        .. " for the object"
    end
  end
end

-- The frame of the script that called the library, and what is wrong with the call.
local function call()
  local reason
  for _, thread in ipairs(raw.threads()) do
    for _, frame in ipairs(raw.list(thread)) do
      if not frame.ours and frame.what ~= "C" and frame.line > 0 then return frame, reason end
      reason = frame.ours and of_self(frame) or reason
    end
  end
end

--- The message, with the script's line where Lua's has none, and what is wrong where that is known.
return function(message)
  local is_ours <const> = message:find "^ltrain%.[%w_.]+:%d+:"
  if not is_ours and not message:find "^attempt to %a+" then return message end
  local ok, frame, reason = pcall(call)
  if not ok or not frame or is_ours and not reason then return message end
  return ("%s:%d: %s"):format(frame.file, frame.line, reason or message)
end
