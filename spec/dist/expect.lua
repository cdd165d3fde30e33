-- spec/dist/expect.lua: what a spec expects of a row of spec/dist/failures.lua: all processes end
-- within ten times the bound, and standard error says why once.
local failures = require "spec.dist.failures"
local luassert = require "luassert"

--- Runs a row over a backend that can be started here (see spec/dist/over.lua).
return function(row, over, look)
  local result, reason = failures.run(row, over, look)
  assert(result, reason)
  luassert.truthy(result.seconds, ("%s over %s: processes are left after %d s; stderr: %s"):format(
    row.name, over, 10 * result.bound, result.err))
  if row.text then luassert.equal(1, result.reported, result.err) end
  if row.status and over == "shm" then luassert.equal(row.status, result.status, result.err) end
  return result
end
