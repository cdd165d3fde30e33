--- stdlib/metrics/ngrams.lua: counts of n-grams of words.

-- Separates the words of an n-gram: no word contains white space.
local SPACE <const> = " "

--- The counts of the n-grams of a list of words, a table by n-gram, and their total.
return function(words, n)
  local counts, total = {}, 0
  for first = 1, #words - n + 1 do
    local run = table.concat(words, SPACE, first, first + n - 1)
    counts[run] = (counts[run] or 0) + 1
    total = total + 1
  end
  return counts, total
end
