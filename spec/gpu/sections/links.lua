-- spec/gpu/sections/links.lua: memory shared with PyTorch; NCCL among the GPUs that there are.
local section = require "spec.gpu.section"

local quote <const> = section.quote

section.add("dlpack", "memory of PyTorch's tensors, on the GPU and pinned", function()
  local python, why = section.python()
  if not python then section.skip("%s", why) end
  local status, text, said = section.run(120, ("PYTHONDONTWRITEBYTECODE=1 %s spec/host/dlpack.py "
    .. "%s torch_cuda"):format(quote(python), quote(section.BUILD .. "/libltrain.so")))
  if status ~= 0 then section.fail("%s", section.last_words(text .. said)) end
end)

-- The links of comm_conformance: `ranks` processes, one a GPU.
section.add("nccl", "NCCL's collectives, of one rank and of all GPUs", function()
  local n = section.gpus()
  for _, ranks in ipairs(n > 1 and { 1, n } or { 1 }) do
    local status, text, said = section.run(200, ("bash -c %s"):format(quote(([[
      export TMPDIR=$(mktemp -d); p=; bad=0
      for r in $(seq 0 %d); do
        timeout -k 1 180 %s nccl - $r %d $TMPDIR & p="$p $!"
      done
      for q in $p; do wait $q || bad=1; done
      rm -rf $TMPDIR; exit $bad]]):format(ranks - 1, quote(section.BUILD
      .. "/spec/c/comm_conformance"), ranks))))
    if status ~= 0 then
      if text:find "libnccl" or said:find "libnccl" then
        section.skip("%s", section.last_words(text .. said))
      end
      section.fail("%d ranks: %s", ranks, section.last_words(text .. said))
    end
    section.note("ranks", ranks, "conform")
  end
end)

local function needs_several()
  if section.gpus() < 2 then section.skip "one GPU" end
end

section.add("all_reduce", "all_reduce against copies between GPUs", function()
  needs_several()
  section.work(300, "", "allreduce")
end)

section.add("kill", "a rank is killed: the job ends and says so", function()
  needs_several()
  local began = section.clock()
  local status, _, said = section.run(60, ("LUA_PATH_5_4='./?.lua;;' %s spec/gpu/work.lua kill %s "
    .. "%s"):format(quote(section.LTRAIN), section.tiny and "tiny" or "full", quote(section.dir
    .. "/failure")))
  section.note("until_the_end", section.clock() - began, "s")
  if status == 0 or status == 124 then section.fail("status %d", status) end
  if not said:find "ended by SIGKILL" then
    section.fail("it said: %s", section.last_words(said))
  end
end)
