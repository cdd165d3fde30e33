-- spec/count.lua: count(text, part): how often a plain text is in another.
return function(text, part)
  local n, at = 0, 1
  while true do
    local from, to = text:find(part, at, true)
    if not from then return n end
    n, at = n + 1, to + 1
  end
end
