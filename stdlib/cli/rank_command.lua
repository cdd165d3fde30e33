--- stdlib/cli/rank_command.lua: the command line of a rank: that of its launcher, without the
--- options that are the launcher's own.
local c = require "ltrain.c"

--- The words of `ltrain WORD`, with what was `parsed` but options in the set `own`. `more`
--- (optional): words that follow the options, before `--`.
return function(parsed, word, own, more)
  local words <const> = { c.runtime.process.executable(), word }
  local skipped <const> = {}
  for _, span in ipairs(parsed.spans) do
    for i = span.first, own[span.name] and span.last or span.first - 1 do skipped[i] = true end
  end
  local after = #parsed.tokens + 1
  for i, token in ipairs(parsed.tokens) do
    if token == "--" and not skipped[i] then
      after = i
      break
    end
    if not skipped[i] then words[#words + 1] = token end
  end
  table.move(more or {}, 1, #(more or {}), #words + 1, words)
  return table.move(parsed.tokens, after, #parsed.tokens, #words + 1, words)
end
