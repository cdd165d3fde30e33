-- spec/cuda/races_spec.lua: ThreadSanitizer sees the threads of an emulated grid: it reports races
-- in shared and in global memory, between threads and between blocks, and nothing else.
--
-- LT_SANITIZE=thread runs the backend's kernels so in some specs (tools/run_specs.lua).
-- tags: slow
local BUILD <const> = os.getenv "LT_BUILD" or "build"

local KINDS <const> = {
  { "right", false, "that waits at barriers is right" },
  { "by_warp", false, "that is ordered by __syncwarp is right" },
  { "no_barrier", true, "without a barrier is reported" },
  { "by_shuffle", true, "that is ordered by a shuffle alone is reported" },
  { "blocks_write", true, "whose blocks write the same is reported" },
  { "block_reads", true, "of which a block reads what another writes is reported" },
}

describe("a kernel", function()
  for _, case in ipairs(KINDS) do
    local kind, wrong, title = table.unpack(case)
    local program = BUILD .. "/spec/cuda/races"
    local file = io.open(program)
    if not file then
      pending(title .. " (no ThreadSanitizer, or no emulated cuda in this build)")
    else
      file:close()
      it(title, function()
        for _, order in ipairs { "1", "-1" } do
          local pipe <close> = assert(io.popen(("EMU_ORDER=%s EMU_RACES=1 TSAN_OPTIONS=exitcode=0:"
            .. "symbolize=0:atexit_sleep_ms=0 '%s' %s 2>&1"):format(order, program, kind)))
          local text = pipe:read "a"
          assert.matches("end\n", text)
          assert.equal(wrong, text:find("ThreadSanitizer: data race", 1, true) ~= nil, text)
        end
      end)
    end
  end
end)
