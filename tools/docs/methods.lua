-- tools/docs/methods.lua: the commented functions of a file as a list of a page.

-- `net:log(name)` for `function Module:log(name)` and for `function methods.log(self, name)`;
-- `Module.adopt(value)` stays what it is.
local function call_text(entry, object, class)
  if entry.field then return ("%s.%s"):format(object, entry.name) end
  local rest = entry.arguments:match("^self,?%s*(.*)$") or entry.arguments:match("^_,%s*(.*)$")
  if entry.sign == ":" or rest then
    return ("%s:%s(%s)"):format(object, entry.name, rest or entry.arguments)
  end
  return ("%s.%s(%s)"):format(class, entry.name, entry.arguments)
end

-- Made by init, called as the object: these are documented elsewhere.
local ELSEWHERE <const> = { init = true, forward = true }

--- The list, nil when there is nothing to list. `object` stands before the names of methods,
--- `class` before those of functions.
return function(file, object, class)
  local lines = {}
  for _, entry in ipairs(file.functions) do
    if entry.doc and entry.name and not ELSEWHERE[entry.name]
      and entry.name:sub(1, 1) ~= "_" then
      local line = ("- `%s`"):format(call_text(entry, object, class))
      if entry.doc ~= "" then line = line .. ": " .. entry.doc end
      for _, param in ipairs(entry.params) do line = line .. (" `%s`"):format(param) end
      lines[#lines + 1] = line
    end
  end
  return #lines > 0 and table.concat(lines, "\n") or nil
end
