-- stdlib/core/elements.lua: iterates over a list from a script up to its last element, so that
-- holes (`{a, nil, b}`) are seen.
--
-- {a, nil, b} is what a misspelt name leaves. ipairs ends before it, and b would be left out
-- without a word; here the nil is an element, which is refused like any other wrong one.

local elements = {}

--- How many elements `list` has with its holes: its greatest whole key.
function elements.count(list)
  local n = #list
  for key in next, list do
    if math.type(key) == "integer" and key > n then n = key end
  end
  return n
end

--- `for k, value in elements.each(list)`: ipairs that does not end before a hole.
function elements.each(list)
  local n = elements.count(list)
  return function(_, k)
    if k < n then return k + 1, list[k + 1] end
  end, nil, 0
end

return elements
