--- stdlib/metrics/common_subsequence.lua: longest common subsequences (LCS) of words, for
--- ROUGEScore.
local common_subsequence = {}

-- Lengths of the longest common subsequences of the first i words of a and the first j of b.
local function lengths_of(a, b)
  local lengths = { [0] = {} }
  for j = 0, #b do lengths[0][j] = 0 end
  for i = 1, #a do
    local above, row = lengths[i - 1], { [0] = 0 }
    for j = 1, #b do
      row[j] = a[i] == b[j] and above[j - 1] + 1 or math.max(above[j], row[j - 1])
    end
    lengths[i] = row
  end
  return lengths
end

--- The length of the longest common subsequence of two lists.
function common_subsequence.common(a, b)
  return lengths_of(a, b)[#a][#b]
end

-- Marks in `marked` which words of `meant` are in its longest common subsequence with `said`.
local function mark(said, meant, marked)
  local lengths = lengths_of(meant, said)
  local i, j = #meant, #said
  while i > 0 and j > 0 do
    if meant[i] == said[j] then
      marked[i] = true
      i, j = i - 1, j - 1
    elseif lengths[i][j - 1] > lengths[i - 1][j] then
      j = j - 1
    else
      i = i - 1
    end
  end
end

local function counts_of(lines)
  local counts = {}
  for _, words in ipairs(lines) do
    for _, word in ipairs(words) do counts[word] = (counts[word] or 0) + 1 end
  end
  return counts
end

--- How many words of the lines `meant` are in a common subsequence with any line of `said`, each
--- word at most as often as it occurs in both.
function common_subsequence.summary_hits(said, meant)
  local left, also_left, hits = counts_of(said), counts_of(meant), 0
  for _, words in ipairs(meant) do
    local marked = {}
    for _, line in ipairs(said) do mark(line, words, marked) end
    for i, word in ipairs(words) do
      if marked[i] and (left[word] or 0) > 0 and also_left[word] > 0 then
        hits = hits + 1
        left[word], also_left[word] = left[word] - 1, also_left[word] - 1
      end
    end
  end
  return hits
end

return common_subsequence
