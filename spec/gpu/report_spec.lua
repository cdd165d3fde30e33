-- spec/gpu/report_spec.lua: ./dev gpu over the emulated GPU, in tiny sizes.
-- tags: slow, third
local c = require "ltrain.c"

local BUILD <const> = os.getenv "LT_BUILD" or "build"
local EMULATED <const> = BUILD .. "/spec/cuda/backends"
local SANITIZED <const> = (os.getenv "LT_SANITIZE" or "") ~= ""

local function line_of(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read()
end

-- Runs sections: {status, text, sections by name}; in `dir`, which stays, where it is given.
local function report(settings, sections, dir)
  local folder <const> = dir or line_of "mktemp -d"
  local path <const> = folder .. "/gpu.json"
  local _, _, status = os.execute(
    ("%s lua5.4 spec/gpu/report.lua --tiny --out '%s' %s >'%s/out' 2>&1"):format(settings, path,
      sections, folder))
  local file <close> = assert(io.open(folder .. "/out"))
  local one, written = { status = status, text = file:read "a", sections = {} }, io.open(path)
  for line in written and written:lines() or function() end do
    local s = c.io.json_decode(line, { plain = true })
    one.sections[s.section], s.of = s, {}
    for _, v in ipairs(s.values) do s.of[v.name] = v.value end
  end
  if written then written:close() end
  if not dir then os.execute("rm -rf '" .. folder .. "'") end
  return one
end

local function case(name, fn)
  if not line_of(("ls '%s/ltrain_cuda.so' 2>/dev/null"):format(EMULATED)) then
    pending(name .. " (no emulated cuda in this build)")
  elseif SANITIZED then
    pending(name .. " (half a minute under sanitizers; it runs ltrain as users do)")
  else
    it(name, fn)
  end
end

local HERE <const> = ("env LTRAIN_BACKENDS='%s'"):format(EMULATED)

describe("./dev gpu", function()
  case("measures models, bandwidth and what a step costs the host", function()
    local one = report(HERE, "info losses bandwidth bench gaps")
    assert.equal(0, one.status, one.text)
    local s = one.sections
    assert.equal(4, s.info.of.gpus)
    assert.matches("Fake GPU", s.info.text)
    assert.is_true(s.losses.of.mlp < 1e-4)
    assert.equal(100, s.bandwidth.of.copy_of_copy)
    assert.is_true(s.bandwidth.of.softmax > 0)
    for _, name in ipairs { "gpt2_step", "gpt2_of_peak", "resnet50_step", "mlp_step",
      "attention_forward", "attention_both" } do
      assert.is_true(s.bench.of[name] > 0, name)
    end
    assert.equal(0, s.gaps.of.gpt2_waits)
    assert.equal(0, s.gaps.of.mlp_waits)
    assert.is_true(s.gaps.of.mlp_launches < 30)
  end)

  case("saves and resumes, takes all memory, sees a fault, and passes 2^31", function()
    local one = report(HERE, "saving memory fault sizes specs")
    assert.equal(0, one.status, one.text)
    assert.is_true(one.sections.memory.of.taken > 0)
    assert.equal(0, one.sections.specs.of.failed)
  end)

  case("reduces among GPUs, and ends when a rank is killed", function()
    local one = report(HERE, "nccl all_reduce kill memcheck dlpack")
    assert.equal(0, one.status, one.text)
    assert.equal("passed", one.sections.nccl.status)
    assert.is_true(one.sections.all_reduce.of.all_reduce > 0)
    assert.equal("passed", one.sections.kill.status)
    for _, name in ipairs { "memcheck", "dlpack" } do
      assert.is_truthy(("passed skipped"):find(one.sections[name].status, 1, true))
    end
  end)

  -- A folder of a toolkit whose tool notes what it was called with, and prints `says`.
  local function toolkit(path, says)
    local home <const> = line_of "mktemp -d"
    local file <const> = home .. "/" .. path
    os.execute(("mkdir -p \"$(dirname '%s')\"; printf '#!/bin/sh\\necho $* >>%s/ran\\n%s' >'%s'; "
      .. "chmod +x '%s'"):format(file, home, says, file, file))
    return home, (" PATH=/usr/bin:/bin CUDA_HOME='%s'"):format(home)
  end

  case("finds compute-sanitizer where a toolkit has it", function()
    local home, settings = toolkit("compute-sanitizer/compute-sanitizer", "")
    local one = report(HERE .. settings, "memcheck synccheck racecheck")
    assert.equal("passed", one.sections.synccheck.status, one.text)
    assert.equal("memcheck synccheck racecheck", line_of(("cut -d' ' -f2 '%s/ran' | paste -sd ' '")
      :format(home)))
    os.execute("rm -rf '" .. home .. "'")
  end)

  case("reads counters of Nsight Compute, those of the last kernel", function()
    local rows = {}
    for k = 1, 2 do
      for _, name in ipairs { "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed", "smsp__inst_executed.sum",
        "gpu__time_duration.sum" } do
        rows[#rows + 1] = ([["%d","gelu","%s","unit","1,02%d"]]):format(k, name, k)
      end
    end
    local printed <const> = table.concat(rows, "\\n")
    local home, settings = toolkit("bin/ncu", "cat <<X\\n" .. printed .. "\\nX\\n")
    local one = report(HERE .. settings, "counters")
    assert.equal("passed", one.sections.counters.status, one.text)
    assert.equal(1022, one.sections.counters.of.softmax_memory)
    local first = line_of(("head -1 '%s/ran'"):format(home))
    assert.matches("spec/gpu/work.lua once tiny gelu_bf16", first, 1, true)
    os.execute("rm -rf '" .. home .. "'")
  end)

  case("lets a section that fails stop no other, and says so", function()
    local one = report(HERE .. " FAKERT_FAIL=2", "gaps info")
    assert.equal(1, one.status)
    assert.equal("failed", one.sections.gaps.status)
    assert.matches("status 1: .*CUDA: invalid argument", one.sections.gaps.reason)
    assert.equal("passed", one.sections.info.status, one.text)
    assert.matches("\ngaps +failed +[%d.]+ s  gaps: status 1", one.text)
  end)

  case("goes on where it stopped: what passed is not run again", function()
    local dir = line_of "mktemp -d"
    report(HERE, "info sizes", dir)
    local names = {}
    local first = report(HERE, "nothing", dir).text:match "there are (.-)\n"
    for name in first:gmatch "[%w_]+" do
      if name ~= "gaps" then names[#names + 1] = name end
    end
    -- As though all but `gaps` had passed before.
    local _, line = io.input(dir .. "/gpu.json"), io.read()
    io.input():close()
    io.input(io.stdin)
    local file <close> = assert(io.open(dir .. "/gpu.json", "w"))
    for _, name in ipairs(names) do file:write((line:gsub('"info"', '"' .. name .. '"')), "\n") end
    file:close()
    local one = report(HERE, "", dir)
    assert.equal(0, one.status, one.text)
    assert.matches("== gaps", one.text)
    assert.not_matches("== info", one.text)
    assert.matches("\ninfo +passed before, by ", one.text)
    os.execute("rm -rf '" .. dir .. "'")
  end)

  case("knows its sections", function()
    local one = report(HERE, "bnech")
    assert.equal(2, one.status)
    assert.matches("^gpu: no section 'bnech': there are info, conformance, memcheck, ", one.text)
  end)
end)
