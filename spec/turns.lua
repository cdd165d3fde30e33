-- spec/turns.lua: variants of cases take turns: an everyday run has `n` of them in each case, other
-- ones in another case and for another LT_TEST_SEED, all of them with --exhaustive. A file that
-- asks has the tag `sampled`.
local EXHAUSTIVE <const> = os.getenv "LT_EXHAUSTIVE" == "1"
local SEED <const> = math.tointeger(tonumber(os.getenv "LT_TEST_SEED")) or 1

-- Calls fn(variant). Which ones it is called with depends on its line, not on the cases before: a
-- case alone has those that it has in its file.
return function(variants, n, fn)
  local first = debug.getinfo(fn, "S").linedefined + SEED
  for k = 1, EXHAUSTIVE and #variants or n do
    fn(variants[(first + k) % #variants + 1])
  end
end
