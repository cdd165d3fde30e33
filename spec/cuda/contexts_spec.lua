-- spec/cuda/contexts_spec.lua: a run on one GPU leaves the others alone: a context there takes
-- hundreds of megabytes. Threads that choose no device use the first one.
-- tags: slow
local counts = require "spec.cuda.counts"

local LTRAIN <const> = os.getenv "LTRAIN" or "ltrain"

describe("a fit on the second GPU", function()
  local title <const> = "makes no context on the first, whichever thread asks"
  if not counts then return pending(title .. " (only the fake runtime knows)") end
  it(title, function()
    for _, mode in ipairs { "late", "threads" } do
      local pipe <close> = assert(io.popen(("d=$(mktemp -d); LUA_PATH_5_4='./?.lua;;' FAKERT=%s "
        .. "'%s' spec/cuda/contexts_work.lua $d 2>&1 </dev/null; rm -rf $d"):format(mode, LTRAIN)))
      assert.matches("contexts: 2\n", pipe:read "a", 1, true)
    end
  end)
end)
