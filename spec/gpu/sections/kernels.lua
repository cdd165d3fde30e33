-- spec/gpu/sections/kernels.lua: each kernel against the CPU's, under compute-sanitizer too, and
-- the specs that run there.
local section = require "spec.gpu.section"

local quote <const>, run <const> = section.quote, section.run
local CONFORMANCE <const> = quote(section.BUILD .. "/spec/c/device_conformance") .. " cuda "
  .. quote(section.BACKENDS .. "/ltrain_cuda.so")

section.add("info", "what there is", function()
  local status, text, said = run(60, quote(section.LTRAIN) .. " info")
  if status ~= 0 then section.fail("%s", section.last_words(said)) end
  section.current.text = text
  io.write(text)
  if not text:find "\ncuda +yes" then
    section.fail("%s", text:match "\n(cuda[^\n]*)" or "this build has no cuda")
  end
  section.note("gpus", section.gpus(), "GPUs")
end)

section.add("conformance", "each kernel against the CPU's", function()
  local status, text, said = run(480, CONFORMANCE)
  if status ~= 0 then section.fail("%s", section.last_words(text .. said)) end
end)

for _, tool in ipairs { "memcheck", "synccheck", "racecheck" } do
  section.add(tool, "compute-sanitizer over each kernel", function()
    local program = section.tool("compute-sanitizer", { "bin", "compute-sanitizer" })
    local status, text, said = run(480, ("%s --tool %s --error-exitcode 9 %s"):format(
      quote(program), tool, CONFORMANCE))
    if status ~= 0 then section.fail("%s", section.last_words(text .. said)) end
  end)
end

-- Specs, on the GPU with tensors there.
local function specs(files)
  local status, text, said = run(480, ("%s %s tools/run_specs.lua %s %s"):format(
    section.EMULATED and "" or "LT_TEST_DEVICES=cuda", quote(section.lua), quote(section.BUILD),
    section.tiny and "spec/cuda/face_spec.lua" or files))
  local passed, failed = text:match "(%d+) passed, (%d+) failed\n$"
  if not passed then section.fail("status %d: %s", status, section.last_words(text .. said)) end
  section.note("passed", tonumber(passed), "cases")
  section.note("failed", tonumber(failed), "cases")
  if status ~= 0 then section.fail("%s", section.last_words(text)) end
end

local KERNELS <const> = { "flash", "attention", "norm", "lines", "sort", "index", "copies",
  "streams", "saving", "update" }

section.add("specs", "specs of what was rewritten last: " .. table.concat(KERNELS, ", "), function()
  local files = {}
  for k, name in ipairs(KERNELS) do files[k] = ("spec/cuda/%s_spec.lua"):format(name) end
  specs(table.concat(files, " "))
end)

return specs
