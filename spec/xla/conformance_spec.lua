-- spec/xla/conformance_spec.lua: kernels of XLA devices give the CPU's results, copies and errors
-- are as ltrain/backend.h says (spec/c/device_conformance.c): some calls of some kernels, all of
-- them with --exhaustive.
-- tags: slow, sampled, unsanitized
local plugin = require "spec.xla.plugin"

describe("xla", function()
  it("conforms to the interface of devices", function()
    if plugin.missing then return pending(plugin.missing) end
    local folder <const> = os.getenv "LT_BUILD"
    local some <const> = os.getenv "LT_EXHAUSTIVE" == "1" and "" or "LT_TEST_SOME=6/24 "
    -- The plugin's own log reports chains of additions that take it long to simplify.
    local command <const> = (some .. "TF_CPP_MIN_LOG_LEVEL=3 '%s/spec/c/device_conformance' xla "
      .. "'%s/backends/ltrain_xla.so' 2>&1"):format(folder, folder)
    local pipe <close> = assert(io.popen(command))
    assert.matches("xla conforms: %d+ devices", pipe:read "a")
  end)
end)
