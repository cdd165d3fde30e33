-- spec/bind/raises.lua: raises(text, fn): fn raises exactly `text`, at a line of its own body.
return function(text, fn)
  local where = debug.getinfo(fn, "S")
  local ok, message = pcall(fn)
  assert(not ok, "nothing was raised")
  local line, said = tostring(message):match(where.short_src:gsub("%p", "%%%0") .. ":(%d+): (.*)$")
  assert(line, "no position in this file: " .. tostring(message))
  require("luassert").equal(text, said)
  line = tonumber(line)
  assert(line >= where.linedefined and line <= where.lastlinedefined,
    ("line %d is not in %d..%d"):format(line, where.linedefined, where.lastlinedefined))
end
