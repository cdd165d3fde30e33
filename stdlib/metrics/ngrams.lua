--- stdlib/metrics/ngrams.lua: runs of n words, counted.

-- Between the words of a run: no word contains white space.
local SPACE <const> = " "

--- How often each run of `n` words occurs in a list of them: a table by run, and how many there
-- are.
return function(words, n)
  local counts, total = {}, 0
  for first = 1, #words - n + 1 do
    local run = table.concat(words, SPACE, first, first + n - 1)
    counts[run] = (counts[run] or 0) + 1
    total = total + 1
  end
  return counts, total
end
