-- spec/gpu/report_spec.lua: ./dev gpu over the emulated GPU, in tiny sizes.
-- tags: slow
local c = require "ltrain.c"

local BUILD <const> = os.getenv "LT_BUILD" or "build"
local EMULATED <const> = BUILD .. "/spec/cuda/backends"
local SANITIZED <const> = (os.getenv "LT_SANITIZE" or "") ~= ""

local function line_of(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read()
end

-- Runs sections: {status, text, sections by name}.
local function report(settings, ...)
  local dir = line_of "mktemp -d"
  local path = dir .. "/gpu.json"
  local _, _, status = os.execute(
    ("%s lua5.4 spec/gpu/report.lua --tiny --out '%s' %s >'%s/out' 2>&1"):format(settings, path,
      table.concat({ ... }, " "), dir))
  local file <close> = assert(io.open(dir .. "/out"))
  local one, written = { status = status, text = file:read "a", sections = {} }, io.open(path)
  if written then
    for _, s in ipairs(c.io.json_decode(written:read "a", { plain = true })) do
      one.sections[s.section], s.of = s, {}
      for _, v in ipairs(s.values) do s.of[v.name] = v.value end
    end
    written:close()
  end
  os.execute("rm -rf '" .. dir .. "'")
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
    local one = report(HERE, "info", "curves", "bandwidth", "bench", "gaps")
    assert.equal(0, one.status, one.text)
    local s = one.sections
    assert.equal(4, s.info.of.gpus)
    assert.matches("Fake GPU", s.info.text)
    assert.is_true(s.curves.of.mlp < 1e-4)
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

  case("reduces among GPUs, and ends when a rank is killed", function()
    local one = report(HERE, "nccl", "kill", "sanitizer")
    assert.equal(0, one.status, one.text)
    assert.is_true(one.sections.nccl.of.all_reduce > 0)
    assert.equal("passed", one.sections.kill.status)
    assert.is_truthy(("passed skipped"):find(one.sections.sanitizer.status, 1, true))
  end)

  case("finds compute-sanitizer where a toolkit has it", function()
    local home = line_of "mktemp -d"
    local path = home .. "/compute-sanitizer/compute-sanitizer"
    os.execute(("mkdir '%s/compute-sanitizer'; printf '#!/bin/sh\\necho $2 >>%s/ran' >'%s'; "
      .. "chmod +x '%s'"):format(home, home, path, path))
    local one = report(HERE .. (" PATH=/usr/bin:/bin CUDA_HOME='%s'"):format(home), "sanitizer")
    assert.equal("passed", one.sections.sanitizer.status, one.text)
    assert.equal("memcheck racecheck synccheck", line_of(("paste -sd ' ' '%s/ran'"):format(home)))
    os.execute("rm -rf '" .. home .. "'")
  end)

  case("lets a section that fails stop no other, and says so", function()
    local one = report(HERE .. " FAKERT_FAIL=2", "gaps", "info")
    assert.equal(1, one.status)
    assert.equal("failed", one.sections.gaps.status)
    assert.matches("status 1: .*CUDA: invalid argument", one.sections.gaps.reason)
    assert.equal("passed", one.sections.info.status, one.text)
    assert.matches("\ngaps +failed +[%d.]+ s  gaps: status 1", one.text)
  end)

  case("knows its sections", function()
    local one = report(HERE, "bnech")
    assert.equal(2, one.status)
    assert.equal("gpu: no section 'bnech': there are info, specs, sanitizer, curves, bandwidth, "
      .. "bench, gaps, nccl, kill\n", one.text)
  end)
end)
